"""Sixty texts that try to be more than text: in a browser, in Markdown, in a spreadsheet, on a terminal."""

from __future__ import annotations

MARKUP = (
    "<script>alert(1)</script>", "</title><script>alert(1)</script>", "</style><script>alert(1)</script>",
    "</svg><script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>",
    "<svg/onload=alert(1)//",
    "\" onmouseover=\"alert(1)", "' onfocus='alert(1)' autofocus='", "<iframe src=javascript:alert(1)></iframe>",
    "<a href='javascript:alert(1)'>x</a>", "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<link rel=stylesheet href=https://example.org/x.css>", "<base href=https://example.org/>", "<!-- x --!><b>",
    "--><b>out</b>", "]]><b>out</b>", "<![CDATA[<b>x</b>]]>", "&lt;script&gt;&#60;b&#62;", "&amp;lt;b&amp;gt;",
    "<form action=https://example.org><input name=x>", "<textarea></table><b>", "<plaintext>", "<image href=https://example.org/x.png>",
    "<?xml version='1.0'?><!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;", "<math><mtext></mtext></math>",
    "}</style><style>*{display:none}", "url(https://example.org/x)", "x;background:url(//example.org)", "\u003cb\u003e",
)  # fmt: skip
TEMPLATES = ("{{ 7 * 7 }}", "{% for x in y %}", "{# gone #}", "${7*7}", "%s%n {0.__class__}", "#{7*7}")
MARKDOWN = (
    "[x](https://example.org)", "![x](https://example.org/x.png)", "a | b | c", "\\| a \\\\| b",
    "`code` **bold** __b__ ~~s~~",
    "# heading", "- item", "1. item", "> quote", "---", "https://example.org www.example.org <https://example.org>",
)  # fmt: skip
SHEETS = (
    "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "=HYPERLINK(\"https://example.org\",\"x\")",
)  # fmt: skip
TERMINAL = (
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "line\nbreak\r\x08\x7f", "\u202eturned\u2066round",
    "\x00\ud800\ufffe",
)  # fmt: skip
PAYLOADS = MARKUP + TEMPLATES + MARKDOWN + SHEETS + TERMINAL
