"""Guesses the charset of a text that does not say it: by the letters that its language has. Pure.

Each row is a charset and a language written in it. A text is decoded by every charset that it is
valid in, and rated by how many of its characters beyond ASCII are usual in the language, and where
they stand: what is decoded by a wrong charset has capitals within words, letters of no alphabet,
or rare Chinese characters.
"""

from __future__ import annotations

import re
import unicodedata
from codecs import getincrementaldecoder
from itertools import islice
from typing import NamedTuple

FEWEST_BYTES = 200
"""A text with fewer bytes beyond ASCII shows too little."""

SAMPLE_BYTES = 1_500
"""About so many bytes beyond ASCII are rated, of the first `MOST_BYTES` of a text."""

MOST_BYTES = 200_000

LOWEST_RATING = 0.5
"""A text in its own charset has 0.6 to 1."""

LEAST_LEAD = 0.1
"""How much better the likely charset must be than any in which the text reads otherwise."""

_WESTERN = ("àâæçèéêëîïôùûœ", "äöüß", "áéíñóú", "ãáâàçéêíóôõú", "àèéìòù", "åäöæøé")
_EASTERN = ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áéíóöúüőű", "čćđšž", "ăâîșțşţ")
_RUSSIAN = "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё"
_UKRAINIAN = "оанивіетрсклудмпязьгбчйхжїцшюєщфґ"
_GREEK = "αοιετσνηυρπκμλςωδγχθφβξζψάέήίόύώϊϋΐΰ"
_CHINESE = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之"
    "年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样"
    "理心本前开但因只从想实数据文件使用请设置程序系统名字符默认输入输出目录参数选项命令无法"
)
_TRADITIONAL = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之"
    "年過發後作裡用道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣"
    "理心本前開但因只從想實數據檔案使用請設置程式系統名字元預設輸入輸出目錄參數選項命令無法"
)
_KOREAN = (
    "이다는의에가을를한하고지로도기사은서시자어해리습니없수일파인정오류용입력출명령대않있할보"
    "나제부나면요스라그전상여동성구주아조장원만과트드우선안여된되표"
)

_FREQUENT = 12
"""The first letters of an alphabet here are its most frequent ones."""

_JAPANESE = "のにはをたがでとしてるれいす"


class _Row(NamedTuple):
    """A charset as `iconv` and Python know it, and the usual letters of a language in it."""

    charset: str
    letters: str
    kind: str
    """`accents` among ASCII letters, an `alphabet` with capitals, or `syllables` without."""


ROWS = (
    *(_Row("windows-1252", letters, "accents") for letters in _WESTERN),
    *(_Row(c, letters, "accents") for c in ("windows-1250", "iso8859-2") for letters in _EASTERN),
    _Row("windows-1254", "çğıöşüâî", "accents"),
    _Row("windows-1257", "āčēģīķļņšūžąęėįų", "accents"),
    *(_Row("mac-roman", letters, "accents") for letters in _WESTERN),
    *(_Row(c, _RUSSIAN, "alphabet") for c in ("windows-1251", "koi8-r", "cp866", "iso8859-5")),
    *(_Row(charset, _UKRAINIAN, "alphabet") for charset in ("windows-1251", "koi8-u")),
    *(_Row(charset, _GREEK, "alphabet") for charset in ("windows-1253", "iso8859-7")),
    _Row("windows-1255", "יהולאתרבמשנםחקדפעכזגטצסןךףץ", "alphabet"),
    _Row("windows-1256", "اليمنترهبوعدفسكقحةجصشطخأزضذثإغظىءئؤآ", "alphabet"),
    _Row("shift_jis", _JAPANESE, "syllables"),
    _Row("euc-jp", _JAPANESE, "syllables"),
    _Row("gb18030", _CHINESE, "syllables"),
    _Row("big5", _TRADITIONAL, "syllables"),
    _Row("euc-kr", _KOREAN, "syllables"),
)

_CODECS = {"shift_jis": "cp932", "euc-kr": "cp949"}
"""The supersets by which these are decoded."""

_ASCII = re.compile(rb"[\x00-\x7f]+")
_HIGH_BYTE = re.compile(rb"[\x80-\xff]")
_BEYOND = re.compile("[^\x00-\x7f]")


def guess_charset(data: bytes) -> str | None:
    """Return the charset of a text that is not UTF-8; None if there is no clear winner."""
    sample = _take_sample(data)
    if len(_ASCII.sub(b"", sample)) <= FEWEST_BYTES:
        return None
    best: dict[str, tuple[float, str]] = {}
    for charset in dict.fromkeys(row.charset for row in ROWS):
        text = _decode(sample, charset)
        if text is not None:
            rating = max(_rate(text, row) for row in ROWS if row.charset == charset)
            # Charsets that give the same text need not be told apart.
            best[text] = max(best.get(text, (-1.0, "")), (rating, charset), key=lambda b: b[0])
    (rating, charset), (second, _) = (*sorted(best.values(), reverse=True), (-1, ""), (-1, ""))[:2]
    return charset if rating >= LOWEST_RATING and rating - second >= LEAST_LEAD else None


def decode_guessed(data: bytes, charset: str) -> str:
    """Return the text in a charset that was guessed from a sample."""
    return data.decode(_CODECS.get(charset, charset), "replace")


def _take_sample(data: bytes) -> bytes:
    """Return the first lines of a text that have bytes beyond ASCII, as many as are rated.

    Whole lines, since a character of two bytes must not be cut but at the end, where a decoder
    leaves it out: a line may be as long as the text.
    """
    taken: list[bytes] = []
    left = SAMPLE_BYTES
    for line in data[:MOST_BYTES].splitlines(keepends=True):
        if left > 0 and not line.isascii():
            taken.append(line)
            left -= len(_ASCII.sub(b"", line))
    sample = b"".join(taken)
    surplus = next(islice(_HIGH_BYTE.finditer(sample), 2 * SAMPLE_BYTES, None), None)
    return sample[: surplus.start()] if surplus else sample


def _decode(sample: bytes, charset: str) -> str | None:
    """Return a sample as text, without a character that is cut at its end; None if not valid."""
    try:
        return getincrementaldecoder(_CODECS.get(charset, charset))().decode(sample)
    except UnicodeDecodeError:
        return None


def _rate(text: str, row: _Row) -> float:
    """Return how usual a text's characters beyond ASCII are in a language: from -1 to 1.

    Punctuation is alike in many charsets, and shows little.
    """
    characters = [m for m in _BEYOND.finditer(text) if unicodedata.category(m[0])[0] not in "PZ"]
    rate = _RATES[row.kind]
    return sum(rate(text, m.start(), row) for m in characters) / (len(characters) or 1)


def _rate_accent(text: str, at: int, row: _Row) -> float:
    """Rate a letter with an accent, which stands among ASCII letters or is a word by itself."""
    before, letter, after = text[at - 1 : at], text[at], text[at + 1 : at + 2]
    is_among = before.isascii() or after.isascii()
    is_capital_within = letter.isupper() and before.islower()
    return 1.0 if letter.lower() in row.letters and is_among and not is_capital_within else -1.0


def _rate_letter(text: str, at: int, row: _Row) -> float:
    """Rate a letter of an alphabet: frequent, in its set, or a capital or among ASCII letters."""
    before, letter, after = text[at - 1 : at], text[at], text[at + 1 : at + 2]
    is_capital_within = letter.isupper() and before.isalpha()
    is_alone = before.isascii() and after.isascii() and (before + after).strip()
    if letter.lower() not in row.letters or is_capital_within or is_alone:
        return -1.0
    return 1.0 if letter.lower() in row.letters[:_FREQUENT] else 0.5


def _rate_syllable(text: str, at: int, row: _Row) -> float:
    """Rate a Chinese, Japanese or Korean character."""
    character = text[at]
    if character in row.letters:
        return 1.0
    if row.letters is _JAPANESE:
        share = 1.0 if _is_between(character, "ぁ", "ん") else 0.6
        is_kana = _is_between(character, "ぁ", "ヺ") or character == "ー"
        return share if is_kana else 0.4 if _is_between(character, "一", "龥") else -1.0
    if row.letters is _KOREAN:
        return 0.4 if _is_between(character, "가", "힣") else -1.0
    # Charsets begin with the frequent characters.
    low, high = (0xB0, 0xD7) if row.letters is _CHINESE else (0xA4, 0xC6)
    lead = character.encode(row.charset, "replace")[0]
    return 0.35 if low <= lead <= high and _is_between(character, "一", "龥") else -1.0


_RATES = {"accents": _rate_accent, "alphabet": _rate_letter, "syllables": _rate_syllable}


def _is_ascii_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _is_between(character: str, first: str, last: str) -> bool:
    return first <= character <= last
