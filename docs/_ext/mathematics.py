"""Translation of plain-text formulas in docstrings and theorems (``sum w_j C_j <= 2 OPT``) to LaTeX.

`marked` finds the formulas in a sentence, `tex` translates one. A formula is a run of symbols, numbers and operators with
a subscript, a Greek letter, a sum, OPT or a comparison, with balanced brackets and without unknown words; everything else
remains text. The site shows LaTeX as MathML, which browsers draw without a script.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from docutils.utils.math.latex2mathml import tex2mathml

LETTERS = (
    *("alpha", "beta", "gamma", "delta", "theta", "kappa", "mu", "nu", "xi", "rho", "sigma", "tau", "eta"),
    *("phi", "psi", "omega", "pi"),
)
GREEK = {name: f"\\{name}" for name in LETTERS} | {"lam": "\\lambda", "lambda": "\\lambda", "eps": "\\varepsilon"}
FUNCTIONS = {name: f"\\{name}" for name in ("sum", "min", "max", "log", "ln", "exp")} | {"log2": "\\log_2"}
NAMES = {name: f"\\mathrm{{{name}}}" for name in ("OPT", "ALG", "size", "pmtn", "online")}
OPERATORS = {
    "<=": "\\le",
    ">=": "\\ge",
    "!=": "\\ne",
    "<": "<",
    ">": ">",
    "*": "\\cdot",
    "||": "\\parallel",
    "|": "\\mid",
}
RELATIONS = ("<=", ">=", "!=", "<", ">", "=")
TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:\.\d+)?(?![\d]|[A-Za-z][A-Za-z\d]))"
    r"|(?P<word>[A-Za-z]+\d?(?:_(?:\{[^{}]*\}|[A-Za-z\d]+)(?![A-Za-z\d_]))?(?:\[[^\[\]]*\])?'?)"
    r"|(?P<operator><=|>=|!=|\|\||\.\.\.?|[-+*/^=<>|(){}\[\],])|(?P<other>.)",
    re.DOTALL,
)
GRAHAM = re.compile(
    r"(?:^|(?<=\s))(?P<machines>1|P\d?|Q|R)\s*\|(?P<jobs>[^|]*)\|"
    r"\s*(?P<goal>[^:|]*?)(?=(?:: |\.\s|[.,]?$|; |, in | and | \())"
)
CLOSE = {")": "(", "}": "{", "]": "["}


def tex(formula: str) -> str:
    """Translate a plain-text formula to LaTeX; every word in it is a symbol."""
    parts: list[str] = []
    tokens = [(each.lastgroup, each.group()) for each in TOKEN.finditer(formula)]
    at = 0
    while at < len(tokens):
        kind, text = tokens[at]
        if kind == "word" and text in ("sqrt", "ceil"):
            inner, at = _argument(tokens, at + 1)
            parts.append(f"\\sqrt{{{tex(inner)}}}" if text == "sqrt" else f"\\lceil {tex(inner)} \\rceil")
            continue
        beside = [tokens[k] for k in (at - 1, at + 1) if 0 <= k < len(tokens)]
        # an operator has its own spacing, a bracket has none
        near = any(k == "operator" and t.strip("(){}") for k, t in beside)
        parts.append(" " if kind == "space" and near and len(text) == 1 else _piece(kind or "", text))
        at += 1
    return re.sub(
        r"(\\(?:sum|max|min|ln|log)(?:_\{[^}]*\})?) \\, ", r"\1 ", re.sub(r"\s+", " ", "".join(parts)).strip()
    )


def _argument(tokens: list[tuple[str | None, str]], at: int) -> tuple[str, int]:
    """Return the argument of a function (a bracket, or the next word or number) and the position after it."""
    while at < len(tokens) and tokens[at][0] == "space":
        at += 1
    if at == len(tokens) or tokens[at][1] != "(":
        return ("".join(text for _, text in tokens[at : at + 1]), at + 1)
    depth, begun = 0, at
    while at < len(tokens):
        depth += {"(": 1, ")": -1}.get(tokens[at][1], 0)
        at += 1
        if depth == 0:
            break
    return "".join(text for _, text in tokens[begun + 1 : at - 1]), at


def _piece(kind: str, text: str) -> str:
    if kind == "space":
        return " \\, " if len(text) == 1 else " \\quad "
    if kind == "word":
        return _symbol(text)
    if kind == "operator":
        return f" {OPERATORS[text]} " if text in OPERATORS else "\\ldots " if text.startswith("..") else text
    return text if kind == "number" else f"\\text{{{text}}}"


def _symbol(word: str) -> str:
    word, prime = word.rstrip("'"), "'" * word.endswith("'")
    word, _, index = word.partition("[")
    name, _, sub = word.partition("_")
    base = {**GREEK, **FUNCTIONS, **NAMES}.get(name, name if len(name) == 1 else f"\\mathrm{{{name}}}")
    sub = index.rstrip("]") or sub.strip("{}")
    return f"{base}_{{{_sub(sub)}}}{prime}" if sub else base + prime


def _sub(text: str) -> str:
    if text in ("max", "min"):
        return f"\\{text}"
    if re.fullmatch(r"[A-Za-z]{2,}", text):
        return text if len(text) == 2 and text.islower() else f"\\mathrm{{{text}}}"
    return tex(text).replace("\\,", "")


@cache
def shown(latex: str) -> bool:
    """Return whether the site can show the formula."""
    try:
        tex2mathml(latex)
    except Exception:  # it raises many kinds of errors
        return False
    return True


def in_markdown(latex: str) -> str:
    """Return the markup of a formula in a Markdown page."""
    return f"${latex}$"


def in_docstring(latex: str) -> str:
    """Return the markup of a formula in a docstring."""
    return f":math:`{latex}`"


def marked(text: str, formula: Callable[[str], str] = in_markdown, plain: Callable[[str], str] = str) -> str:
    """Return a sentence with formulas written by ``formula`` and other text by ``plain``; backticked text is unchanged."""
    parts = re.split(r"(``[^`]*``|:[a-z:]+:`[^`]*`|`[^`]*`_?)", text)
    return "".join(part if k % 2 else _sentence(part, formula, plain) for k, part in enumerate(parts))


def _sentence(text: str, formula: Callable[[str], str], plain: Callable[[str], str]) -> str:
    graham = GRAHAM.search(text)
    if graham and len(graham["goal"].split()) < 8 and shown(latex := _graham(graham)):
        before, after = text[: graham.start()], text[graham.end() :]
        return _sentence(before, formula, plain) + formula(latex) + _sentence(after, formula, plain)
    tokens = list(TOKEN.finditer(text))
    found, begun, at = [], 0, 0
    while at < len(tokens):
        end = _run(tokens, at)
        if end > at:
            latex = tex(text[tokens[at].start() : tokens[end - 1].end()])
            before, after = text[: tokens[at].start()][-1:], text[tokens[end - 1].end() :][:1]
            if (not before or before in " ('\"-/:\n") and (not after or after in " )'\"-/:.,;!?\n") and shown(latex):
                found += [plain(_compared(text[begun : tokens[at].start()])), formula(latex)]
                begun = tokens[end - 1].end()
                at = end
                continue
        at += 1
    return "".join([*found, plain(_compared(text[begun:]))])


def _compared(text: str) -> str:
    """Replace <= and >= between words."""
    return re.sub(r"(?<= )<=(?= )", "≤", re.sub(r"(?<= )>=(?= )", "≥", text))


def _graham(found: re.Match[str]) -> str:
    """Translate a problem in Graham's notation, with three fields: machines, jobs, objective."""
    jobs = [part.strip() for part in found["jobs"].split(",") if part.strip()]
    name = found["machines"]
    machines = name if len(name) == 1 else f"{name[0]}_{name[1]}"
    goal, between = _field(found["goal"].strip()), ",\\ "
    return (
        f"{machines} \\mid {between.join(map(_field, jobs))} \\mid {goal}" if jobs else f"{machines} \\parallel {goal}"
    )


def _field(text: str) -> str:
    """Translate a part of a field: symbols with words between them."""
    if not _words(text) and "-" not in text.replace(" - ", ""):
        return tex(text)
    parts = []
    for word in re.split(r"(?<=[\s-])", text):
        symbol = word.strip(" ,")
        apart = "\\ " if parts and not parts[-1].startswith("\\text") and not parts[-1].endswith("-") else ""
        parts.append(
            f"{apart}\\text{{{word}}}" if _words(symbol) or not symbol.strip("-") else word.replace(symbol, tex(symbol))
        )
    return "".join(parts).replace("}\\text{", "")


def _words(text: str) -> bool:
    """Return whether the text has a word that is not a symbol."""
    known = {*GREEK, *FUNCTIONS, *NAMES, "sqrt", "ceil"}
    return any(len(word) > 1 and word not in known for word in re.findall(r"(?<![_A-Za-z{])[A-Za-z]+", text))


def _run(tokens: list[re.Match[str]], at: int) -> int:
    """Return the end of the longest formula that begins at a token, or ``at`` if there is none."""
    if tokens[at].lastgroup not in ("word", "number", "operator") or not _begins(tokens[at]):
        return at
    depth: list[str] = []
    best, end, strong = at, at, False
    operand = False  # whether the last token was an operand
    while end < len(tokens):
        kind, text = tokens[end].lastgroup, tokens[end].group()
        if kind == "word":
            if not _is_symbol(tokens, end, inside=bool(depth)):
                break
            strong |= _is_strong(text)
            operand = text not in FUNCTIONS and text not in ("sqrt", "ceil")
        elif kind == "number":
            operand = True
        elif kind == "operator":
            if text in CLOSE:
                if not depth or depth.pop() != CLOSE[text]:
                    break
                operand = True
            elif text in "({[":
                depth.append(text)
                operand = False
            elif text in ("|", "||") or (text == "," and not depth):
                break
            else:
                strong |= text in RELATIONS
                operand = False
        elif kind != "space":
            break
        end += 1
        if operand and not depth and strong and kind != "space":
            best = end
    return best if best - at > 1 or (best > at and _is_strong(tokens[at].group())) else at


def _begins(token: re.Match[str]) -> bool:
    return token.lastgroup != "operator" or token.group() == "("


def _is_symbol(tokens: list[re.Match[str]], at: int, inside: bool) -> bool:
    """Return whether a word is part of a formula: a known name, a short name with a subscript, or a letter.

    The letters a, A and I are symbols only ``inside`` brackets and next to an operator.
    """
    word = tokens[at].group().rstrip("'")
    name, _, sub = word.partition("[")[0].partition("_")
    if name in ("sum", "min", "max") and not sub and not _of_symbols(tokens, at):
        return False  # the English word
    if (
        name in GREEK
        or name in FUNCTIONS
        or (name in NAMES and (sub or name in ("OPT", "ALG")))
        or name in ("sqrt", "ceil")
    ):
        return True
    if sub:
        return (len(name) <= 2 and len(sub.strip("{}")) <= 6) or (len(name) <= 8 and len(sub) == 1)
    if len(name) != 1:
        return False
    return name not in "aAI" or inside or any(_operator(tokens, at, step) for step in (-1, 1))


def _of_symbols(tokens: list[re.Match[str]], at: int) -> bool:
    """Return whether a bracket, a function or a symbol with a subscript follows a word."""
    after = tokens[at + 1 :]
    if after and after[0].group() == "(":
        return True
    word = after[1] if len(after) > 1 and after[0].lastgroup == "space" else None
    if word is None or word.lastgroup != "word":
        return word is not None and word.group() == "(" and tokens[at].group() == "sum"
    name, _, sub = word.group().partition("_")
    behind = next((each.group() for each in after[2:] if each.lastgroup != "space"), "")
    return bool(sub) or name in ("sum", "min", "max") or (len(name) == 1 and behind in ("-", "+", "/", ")", "<=", ">="))


def _operator(tokens: list[re.Match[str]], at: int, step: int) -> bool:
    """Return whether an operator of a formula is next to a token."""
    at += step
    while 0 <= at < len(tokens) and tokens[at].lastgroup == "space":
        at += step
    return 0 <= at < len(tokens) and tokens[at].group() in ("<=", ">=", "=", "+", "/", "*", "^", "<", ">")


def _is_strong(word: str) -> bool:
    """Return whether a word alone shows that a run is a formula."""
    name, _, sub = word.partition("_")
    return bool(sub) or (name in GREEK and name not in ("pi", "mu", "nu")) or name in ("OPT", "sum")
