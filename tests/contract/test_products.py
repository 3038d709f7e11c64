"""The packages beside the core see the core alone, and the core sees none of them."""

import ast

from projects import REPOSITORY

import mind2web2
from mind2web2 import plugin

# What all of them together import from the core; it may only get less.
MAX_NAMES = 80
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


def names_from(module):
    """Return the names that products import from a module."""
    found = {each for product in PRODUCTS for each in imports(product)}
    return {name for source, name in found if source == module}


def test_products_import_from_two_modules_alone():
    sources = {
        module
        for product in PRODUCTS
        for module, _ in imports(product)
        if module.partition(".")[0] == "mind2web2"
    }
    assert sources <= {"mind2web2", "mind2web2.plugin"}
    assert names_from("mind2web2") <= {*mind2web2.__all__, "__version__"}


def test_the_list_of_names_has_those_that_products_use():
    assert names_from("mind2web2.plugin") == plugin.HOMES.keys()
    assert len(plugin.HOMES.keys() | names_from("mind2web2")) <= MAX_NAMES


def test_each_name_is_exported_to_type_checkers_as_well():
    tree = ast.parse((REPOSITORY / "mind2web2/plugin.py").read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    assert {
        alias.asname: statement.module for statement in block.body for alias in statement.names
    } == plugin.HOMES
    assert all(hasattr(plugin, name) for name in plugin.HOMES)
