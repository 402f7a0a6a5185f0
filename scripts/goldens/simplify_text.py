#!/usr/bin/env python3
"""Writes skein/prepare/dedup/testdata/words.json: texts, and their words as datatrove simplifies them.

    scripts/goldens/simplify_text.py > skein/prepare/dedup/testdata/words.json

Needs the PyPI packages datatrove and regex. The texts have no symbols that datatrove keeps and Skein
takes for separators (¿, ، and । among them), and no script without spaces: docs/deduplication.md says
how these differ. Hangul is composed again, which Skein does not take apart.
"""
import json
import unicodedata

from datatrove.utils.text import simplify_text

TEXTS = [
    "The quick brown Fox, jumps over the lazy dog.",
    "don't  stop\t-- now!\n\nIt's 3.14159 or 2,718; (42) #7 & 100% a_b",
    "1,234,567.89 and 12:30 on 2024-01-02, v1.2.3",
    "abc123def x86_64 42nd 0x1F",
    "“Quotes” — dashes… and «guillemets», qué? sí!",
    "Ångström café naïve résumé ÉCOLE cafe\u0301 Ñandú ß Straße",
    "Ελληνικά: Καλημέρα κόσμε, ΆΈΉΊΌΎΏ ς",
    "Привет, мир! Ёлка и йод; 12,5 рублей",
    "Việt Nam: Tiếng Việt có dấu",
    "İstanbul ıssız ŞİŞLİ",
    "עִבְרִית שָׁלוֹם, עולם",
    "العربية ١٢٣٫٤٥ مرحبا كَتَبَ",
    "नमस्ते दुनिया १२३",
    "한국어 텍스트, 안녕하세요 123",
    "Արևմտահայերէն Բարեւ",
    "ქართული ენა",
    "\ufb01ne ½ ² Ⅻ ①",
    "  leading and trailing \r\n\f\v ",
    "",
    "...",
    "7", "7.", ".7", "7.7.7", "7..7", "7 .7",
]
print(json.dumps([{"text": text, "words": unicodedata.normalize("NFC", simplify_text(text)).split()} for text in TEXTS],
                 ensure_ascii=False, indent=1))
