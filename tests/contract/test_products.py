"""The packages beside the core see the core alone, and the core sees none of them."""

import ast

from projects import REPOSITORY

# What all of them together import from the core; it may only get less.
MAX_NAMES = 277
PRODUCTS = sorted(path.parent for path in REPOSITORY.glob("mind2web2_*/__init__.py"))


def imports(package):
    """Yield the names that a package's modules import, each with its module."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from ((alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((node.module, alias.name) for alias in node.names)


def packages(package):
    """Return the names of our packages that a package imports."""
    tops = {module.partition(".")[0] for module, _ in imports(package)}
    return {top for top in tops if top.startswith("mind2web2")}


def test_the_core_sees_no_product():
    """It names the engine of a cluster by a setting, and commands by entry points."""
    assert packages(REPOSITORY / "mind2web2") == {"mind2web2"}


def test_products_do_not_see_each_other():
    assert {
        product.name: packages(product) - {"mind2web2", product.name} for product in PRODUCTS
    } == {product.name: set() for product in PRODUCTS}


def test_products_take_few_names_from_the_core():
    names = {
        (module, name)
        for product in PRODUCTS
        for module, name in imports(product)
        if module.partition(".")[0] == "mind2web2"
    }
    assert len(names) <= MAX_NAMES, sorted(names)
