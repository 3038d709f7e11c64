"""A report with one claim of each verdict, its pages, and a judge that answers by rules."""

import re

from servers.local_http import Answer, Request

PAGES = {
    "/dam": "The Ayr Dam was built in 1936. It is 221 m high.",
    "/mill": "The Wick mill burned down in 1890.",
}
# A web archive has it.
OLD_PAGE = "Eels swam in Ayr. Then they left."
REPORT = """# Dams

The Ayr Dam was built in 1936. [1] The Ayr Dam was built in 1940. [1] It snows in Wick.[2]
The Wick mill burned down in 1890.[1][2] Rain fell. [3] Cows eat grass. Gold was found. [4]
Eels swam in Ayr. [5]

## References
[1] {0}/dam
[2] {0}/mill
[3] {0}/gone
[4] https://no-such-host.invalid/a
[5] {0}/old
"""


def page(request: Request) -> Answer:
    text = PAGES.get(request.path)
    # Some servers send a page's words with an error.
    body = f"<title>A page</title><p>{text or 'Rain fell.'}</p>".encode()
    return Answer(body, 200 if text else 404, {"Content-Type": "text/html"})


def block(name: str, text: str) -> str | None:
    found = re.search(rf"<<{name} (\w+)>>\n(.*?)\n<<end of {name} \1>>", text, re.DOTALL)
    return found[2] if found else None


def judged(body: dict) -> dict:
    text = "".join(part.get("text", "") for part in body["messages"][-1]["content"])
    claim, shown = block("claim", text), block("page", text) or ""
    if claim is None:
        numbered = re.findall(r"^(\d+)\. (.*)$", block("answer", text) or "", re.MULTILINE)
        return {
            "statements": [
                {"number": int(number), "checkable": True, "claims": [said]}
                for number, said in numbered
            ]
        }
    beginning = next((said for said in re.split(r"(?<=\.) ", shown) if said[:12] == claim[:12]), "")
    quote = "Wick burned." if "mill" in beginning else beginning
    return {"reasoning": "As it is.", "result": claim in shown, "quote": quote}
