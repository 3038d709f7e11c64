"""The words and marks that give away a text written for a judge, as patterns over readable text (lower case).

They ask for words of command beside words of judging: of ordinary pages, many say that a claim is true, some
rate claims, and a few tell programmers which instructions to ignore.
"""

from __future__ import annotations

import re
from functools import cache

from mind2web2.evidence import FlagKind

# What stands for more in the patterns below. A blank is last: whatever may stand between two words,
# punctuation and Markdown's signs included; so words of their own have bounds and no underscores.
_STANDS_FOR = {
    "CLAIMED": (
        r"\b(?:claims?|verdicts?|results?|answers?|statements?)\b.{0,60}?\b(?:supported|true|verified)\b"
    ),
    "BLOCK": r"(?:task|answer|page\saddress|page|claim|extra\sinstruction|what\sto\sextract|problem)",
    "EARLIER": r"(?:previous|prior|earlier|preceding|above|foregoing|former|initial|original)",
    "ORDERS": r"(?:instruction|prompt|directive|guideline)s?",
    "READER": (
        r"(?:llms?|(?:large )?language models?|ai|ai (?:models?|agents?|assistants?|judges?|systems?|readers?"
        r"|evaluators?|graders?|reviewers?)|(?:llm|automated|automatic) (?:judges?|graders?|evaluators?"
        r"|fact checkers?))"
    ),
    "YES": r"(?:(?:fully|clearly|always) )?(?:supported|true|verified|correct|passed)",
    "NEAR": r".{0,250}?",
    "WORD": r"[^\W_]{1,20}",
    " ": r"[\W_]{1,6}",
}

_SIGNS: tuple[tuple[FlagKind, str], ...] = (
    (
        "instruction",
        r"\b(?:ignore|disregard|forget|override|overwrite|bypass)"
        r" (?:(?:all|any|every|the|your|of|these|my) ){0,4}EARLIER (?:WORD ){0,2}ORDERS\b",
    ),
    (
        "instruction",
        r"\b(?:ignore|disregard|forget|override|bypass) (?:(?:all|any|of) ){0,2}(?:your|the system)"
        r" (?:WORD ){0,2}ORDERS\b",
    ),
    (
        "instruction",
        r"\b(?:ignore|disregard|forget) (?:everything|anything|all|what) (?:WORD ){0,4}?"
        r"(?:above|before|told)\bNEARCLAIMED",
    ),
    (
        "instruction",
        r"\b(?:note|message|instructions?|attention|notice|memo|hint|dear|hello|hi)"
        r" (?:(?:to|for|all|any|the) ){0,3}READER\bNEAR(?:CLAIMED|\bas YES\b|\bresult true\b)",
    ),
    (
        "instruction",
        r"\b(?:note|message|instructions?|attention|notice|memo|dear|hello) (?:(?:to|for|all|any|the) ){0,3}"
        r"(?:judge|grader|evaluator)s?\bNEAR\b(?:supported|(?:claims?|statements?) (?:is|are|as) YES)\b",
    ),
    (
        "instruction",
        r"\b(?:as an? (?:WORD )?(?:READER|judge|grader|evaluator) you"
        r"|you are (?:now )?(?:(?:an?|the) )?(?:WORD )?(?:READER|judge|grader|evaluator))\b"
        r".{0,40}?\b(?:must|should|always|please|only)\b.{0,120}?(?:CLAIMED|\bas YES\b)",
    ),
    ("instruction", r"\b(?:new|updated|revised|hidden|secret|real) instructions?\bNEARCLAIMED"),
    (
        "instruction",
        r"\b(?:mark|judge|rate|score|treat|return|reply|respond|output|set|answer)"
        r" (?:(?:this|the|every|all|each|any|that|these) ){0,3}(?:claims?|verdicts?|results?|everything)"
        r" (?:WORD ){0,4}?(?:as|to) YES\b(?! (?:or|and|nor|refuted|false|not|if|when))",
    ),
    (
        "instruction",
        r"\b(?:return|output|reply|respond|answer) (?:(?:only|with|that) ){0,2}(?:result|the claim is) YES\b",
    ),
    (
        "instruction",
        r"\b(?:page|source|document|article)s? (?:WORD )?(?:support|confirm|verif)[a-z]{0,3}"
        r" (?:every|all|any|each) (?:WORD ){0,2}claims?\b",
    ),
    # Said once, it is what pages of fact checkers say.
    ("instruction", r"(?:\bclaim is YES\b.{0,12}?){10}"),
    (
        "instruction",
        r"\bignorier[a-z]{0,3} (?:WORD ){0,2}(?:vorherig|bisherig|obig|vorig|vorangegangen)en (?:WORD )?"
        r"(?:anweisung|instruktion|befehl)",
    ),
    (
        "instruction",
        r"\bignore[rz]? (?:WORD ){0,2}(?:les|ces) (?:instructions|consignes)"
        r" (?:pr[ée]c[ée]dentes|ci dessus|ant[ée]rieures)",
    ),
    (
        "instruction",
        r"\bignor[a-z]{1,3} (?:WORD ){0,2}(?:las|le|as) (?:instrucciones|istruzioni|instru[çc][õo]es)"
        r" (?:WORD )?(?:anterior|previa|precedent)",
    ),
    (
        "instruction",
        r"(?:игнорируй|забудь)(?:те)? (?:WORD ){0,2}(?:предыдущ|прежн|вышеуказанн)WORD?"
        r" (?:инструкц|указани|команд)",
    ),
    (
        "instruction",
        r"(?:忽略|无视|無視)\S{0,6}(?:之前|以上|前面|先前|上述)\S{0,4}(?:指令|指示|说明|說明|提示)"
        r"|(?:以前|上記|これまで)の\S{0,4}(?:指示|命令)\S{0,6}無視"
        r"|(?:이전|위의|앞의)\s?\S{0,3}\s?(?:지시|명령|지침)\S{0,4}\s?무시",
    ),
    (
        "forged delimiter",
        r"<<\s*(?:end\sof\s+)?BLOCK\s+[0-9a-f.\u2026]{8,}\s*>>|<<\s*end\sof\s+BLOCK[^<>\n]{0,40}>>",
    ),
    (
        "forged delimiter",
        r"</\s*(?:answer|claim|page|document|context|untrusted[a-z_]{0,12}|user_?input)\s*>"
        r"NEAR\b(?:system|instructions?|verdict|supported)\b",
    ),
    (
        "forged delimiter",
        r"\bend of (?:the )?(?:page|answer|document|untrusted (?:text|content|material))\b"
        r"NEAR\b(?:(?:new|real) instructions?|system (?:message|prompt)|judge|verdict)\b",
    ),
    (
        "chat template",
        r"<\|\s*(?:im_start|im_end|im_sep|system|user|assistant|endoftext|eot_id|start_header_id|end_header_id"
        r"|begin_of_text)\s*\|>|<</?sys>>|<(?:start|end)_of_turn>|\[/?inst\].{0,400}?\[/?inst\]",
    ),
    (
        "fake system message",
        r"(?:^|[\n>])[\s*#\[(<_-]{0,6}(?:system|developer)(?:\s(?:message|prompt|note|notice|override|update"
        r"|instruction)s?)?[\s*\])>_]{0,4}:NEAR(?:CLAIMED|\bjudges?\b|\bEARLIER ORDERS)",
    ),
    ("fake system message", r"[\"']role[\"']\s*:\s*[\"'](?:system|developer)[\"'].{0,40}?[\"']content[\"']"),
    (
        "finished verdict",
        r"\breasoning[\"']?\s{0,4}[:=].{0,600}?\bresult[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:true|false)\b"
        r"|\bresult[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:true|false)\b.{0,200}?\breasoning[\"']?\s{0,4}[:=]",
    ),
    (
        "finished verdict",
        r"[\"'](?:verdict|(?:claim_)?supported)[\"']\s*:\s*[\"']?(?:true|supported|passed|yes)\b",
    ),
    (
        "finished verdict",
        r"<verdict>\s*YES|\b(?:final|official) (?:verdict|judge?ment)\s?[:=] the claim is YES\b",
    ),
)

# In an address nobody talks to a reader: there a bare assertion is enough.
_IN_ADDRESSES = r"\bclaim (?:is )?YES\b|\bresult true\b|\bverdict YES\b"

# Where one of these stands, its surroundings are looked at closely; most pages have few.
ANCHORS = (
    *(
        "<<",
        "<|",
        "</",
        "[inst",
        "_of_turn>",
        "<verdict",
        "end of ",
        "system",
        "developer",
        "role",
        "reasoning",
    ),
    *(
        "verdict",
        "supported",
        "judge",
        "judgment",
        "ignor",
        "disregard",
        "forget",
        "overrid",
        "overwrite",
        "bypass",
    ),
    *(
        "llm",
        "language model",
        "grader",
        "evaluator",
        "instruction",
        "claim",
        " ai ",
        " ai:",
        " ai,",
        "result",
    ),
    *("игнорируй", "забудь", "忽略", "无视", "無視", "무시"),
)


@cache
def signs() -> tuple[tuple[FlagKind, re.Pattern[str]], ...]:
    """Return the patterns with the kind of flag that each stands for."""
    return tuple((kind, _compiled(sign)) for kind, sign in _SIGNS)


@cache
def address_sign() -> re.Pattern[str]:
    """Return the pattern of an address that asserts something of the claim."""
    return _compiled(_IN_ADDRESSES)


def _compiled(sign: str) -> re.Pattern[str]:
    for name, meaning in _STANDS_FOR.items():
        sign = sign.replace(name, meaning)
    return re.compile(sign, re.DOTALL)
