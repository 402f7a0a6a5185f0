#!/usr/bin/env python3
"""Writes skein/jinja/values/special_cases.inc: the characters whose upper or title case is several characters,
or differs between the two, as Python has them.

    scripts/goldens/special_cases.py > skein/jinja/values/special_cases.inc
"""
import unicodedata


def literal(text):
    return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) > 0x7e else c for c in text) + '"'


print(f"// Made by scripts/goldens/special_cases.py with Unicode {unicodedata.unidata_version}.")
for code in range(0x110000):
    upper, title = chr(code).upper(), chr(code).title()
    if len(upper) > 1 or len(title) > 1:
        print(f"{{0x{code:x}, {literal(upper)}, {literal(title)}}},")
