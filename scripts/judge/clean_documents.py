"""Documents to judge cleaning with: made ones, near the thresholds of every rule, and changed files."""
import random

WORDS = """the be to of and that have with a in is it for on as at by an this from or was are but not they
his her you we one all out up about which their there what so if can more when time people year way day
man thing woman life child world school state family student group country problem hand part place case
week company system program question work government number night point home water room mother area money
story fact month lot right study book eye job word business issue side kind head house service friend
father power hour game line end member law car city community name president team minute idea kid body
information back parent face others level office door health person art war history party result change
morning reason research girl guy moment air teacher force education extraordinarily internationalization
I II a.m. Mr. U.S. e.g. don't it's they'll can't we've o'clock rock'n'roll co-operate state-of-the-art
3.14 1,000 $5 10km 50% #1 @home www.example.com http://example.org/a?b=c user@example.com C++ x=y and/or""".split()
ODD = ["日本語のテキスト。", "Привет,", "мир!", "مرحبا", "नमस्ते।", "naïve", "e\u0301tude", "“quoted”", "‘single’", "«guillemets»",
       "(parenthesis)", "[1]", "[12]", "[edit]", "[citation needed]", "[a]", ":-)", ":)", "(^_^)", "<3", "…", "...", "....", "--", "—",
       "–", "-", "•", "·", "#", "##", "#tag", "{", "}", "{x}", "lorem", "Lorem ipsum", "JavaScript", "javascript:", "cookie policy",
       "Privacy Policy", "terms of use", "use cooKies", "uses cookies", "\u200b", "\ufeff", "\u00a0", "\u2028", "\x0b", "\x1c", "\x85",
       "\t", "½", "²", "5²", "10m²", "№", "©", "™", "\U0001f600", "a\U0001f600b", "⁉", "?!", "!?", "।", "。", "1.2.3.4", "8.8.8.8/x",
       "10.0.0.1:80/x", "25°C.", "°C", "’s", "'s", "it’s", "won’t", "x" * 40, "x" * 1001, "_", "__init__", "a_b", "a|b", "|", "~", "^",
       "١٢٣", "५.", "ß", "İ", "ſ", "K", "=", "+1", "1+1", "2-3", "a/b", "A.B.", "A.b", "a.B", "aB.", "AB.", "\\n", "\\", "\x00", "\x7f"]
ENDS = [".", ".", ".", "?", "!", "", "", ",", ";", ":", "...", "…", "\"", "'", ".)", ".”", "。", "’"]


def sentence(rng, oddness, mean):
    words = [rng.choice(ODD) if rng.random() < oddness else rng.choice(WORDS)
             for _ in range(max(1, int(rng.gauss(mean, mean / 3))))]
    return " ".join(words) + rng.choice(ENDS)


def page(rng):
    """A page whose knobs are drawn anew, so that every rule has pages on both sides of it."""
    oddness = rng.choice([0, 0, 0.01, 0.03, 0.2])
    mean = rng.choice([4, 8, 12, 20])
    pool = [sentence(rng, oddness, mean) for _ in range(rng.choice([2, 5, 20, 60]))]
    fresh = rng.choice([0.2, 0.6, 0.9, 1])
    bullet, ellipsis, hashes = (rng.choice([0, 0, 0, 0.3, 0.95]) for _ in range(3))
    breaks = rng.choice([["\n"], ["\n\n"], ["\n", "\n\n", " "], [" ", " ", " ", "\n"], ["\r\n", "\n"], ["  ", "\n \n"]])
    parts = []
    for _ in range(rng.choice([1, 4, 8, 15, 40])):
        text = sentence(rng, oddness, mean) if rng.random() < fresh else rng.choice(pool)
        if rng.random() < bullet:
            text = rng.choice(["- ", "• ", "  -", "* "]) + text
        if rng.random() < ellipsis * 0.4:
            text += rng.choice(["...", "…", "... "])
        if rng.random() < hashes:
            text = "#" * rng.randint(1, 4) + text
        parts.append(text)
        parts.append(rng.choice(breaks))
    if rng.random() < 0.7:
        parts.pop()
    return "".join(parts)


def fragments(rng, exceptions):
    """Pieces that words are made of, in any order."""
    letters = "abAB01.,:;'\"-–—()/…+*^=<>$€%°Cm s’‘~@_日é#[]{}!?\n"
    parts = []
    for _ in range(rng.randint(1, 60)):
        kind = rng.random()
        if kind < 0.3:
            parts.append(rng.choice(exceptions))
        elif kind < 0.6:
            parts.append(rng.choice(ODD))
        elif kind < 0.8:
            parts.append("".join(rng.choice(letters) for _ in range(rng.randint(1, 8))))
        elif kind < 0.85:
            parts.append(chr(rng.choice([rng.randrange(0x20, 0x3000), rng.randrange(0xe000, 0x20000)])))
        else:
            parts.append(rng.choice(WORDS))
        parts.append(rng.choice(["", " ", " ", "  ", "\n"]))
    return "".join(parts)


def changed(rng, text):
    """A part of a file with some characters and lines changed."""
    begin = rng.randrange(max(1, len(text)))
    lines = text[begin:begin + rng.choice([300, 1500, 6000])].split("\n")
    for _ in range(rng.choice([0, 0, 1, 5])):
        i = rng.randrange(len(lines))
        lines[i] = rng.choice([lines[i].upper(), lines[i] * 2, rng.choice(ODD) + lines[i], lines[i] + rng.choice(ENDS),
                               rng.choice(lines)])
    return "\n".join(lines)


def documents(count, seed, files, exceptions):
    rng = random.Random(seed)
    texts = []
    for path in files:
        texts.append(open(path, encoding="utf-8", errors="replace", newline="").read(1 << 20))
    for _ in range(count):
        kind = rng.random()
        if texts and kind < 0.3:
            yield changed(rng, rng.choice(texts))
        elif kind < 0.4:
            yield fragments(rng, exceptions)
        else:
            yield page(rng)
