"""What a file becomes in an index changes only together with the version of the index."""

from __future__ import annotations

import hashlib

import pytest

from llm_kb.search.chunks import chunk_document
from llm_kb.search.index.database import VERSION
from llm_kb.search.index.update import list_columns
from llm_kb.search.roles import explain_unsearched, find_role
from tests.texts.test_outlines import TEXTS

RECORDED = (37, "88d1c51adc47cf10")

FILES = {
    "docs/guide.md": (
        "---\ntitle: Guide\n---\n\n# Guide\n\nIntro.\n\n## Install[[setup]]\n\n```sh\n"
        "pip install x\n```\n\n"
        "- one\n- two\n\n<h3 name='faq'>FAQ</h3>\n\nA | B\n--|--\n1 | 2\n\n" + "A sentence. " * 200
    ),
    "docs/settings.rst": (
        "Settings\n========\n\n.. setting:: AGE\n\n``AGE``\n-------\n\nDefault: ``0``\n\n"
        ".. function:: load(path)\n\n   Load it.\n\nText of *it*.\n\n" + "Another sentence.\n" * 90
    ),
    "site/page.html": (
        "<html><head><title>Page</title></head><body><nav>Menu</nav><main><h1 id='top'>Page</h1>"
        "<p>Text &amp; more.</p><h2>Part</h2><ul><li>one</li><li>two</li></ul></main></body></html>"
    ),
    "src/pool.py": (
        "import os\n\n\n# A pool.\nclass Pool:\n    def getItem(self):\n        return 1\n\n\n"
        + "def close():\n    pass\n\n\n" * 60
    ),
    "src/Pool.pm": "sub take { 1 }\n\n=head1 NAME\n\nPool\n\n=cut\n\nsub give { 2 }\n" + "1;\n" * 9,
    "src/pool.ts": "export class Pool {\n  getItem(id: number) {\n    return id\n  }\n}\n",
    "src/pool.go": "func (p *Pool) Get() error {\n\treturn nil\n}\n",
    "notes.txt": "Notes\n-----\n\n部署設定 and getItem.\n" + "word " * 600,
    "docs/manual.adoc": (
        "= Manual\n:toc:\n\n[[setup]]\n== Install\n\n----\n== code\n----\n\n"
        "Old title\n---------\n\n" + "A sentence. " * 120
    ),
    "notes.org": "* TODO One :tag:\n#+BEGIN_SRC sh\n* x\n#+END_SRC\n** Two\n" + "Words. " * 60,
    "content/page.md": "+++\ntitle = 'Shortcodes'\n+++\n\n## Usage\n\nText.\n",
    "man/count.Rd": "\\name{count}\n\\title{Count}\n",
    "docs/guide.pod": "=head1 Guide\n\nText.\n\n=head2 C<part>\n\nMore.\n",
    "docs/page.mediawiki": "= Page =\n<pre>\n= no =\n</pre>\n== Part ==\n",
    "man/count.1": '.TH COUNT 1\n.SH NAME\ncount\n.SS "Of words"\n',
    "docs/block.mdx": "<div>\n# no\n</div>\n\n## H {/* #own */}\n",
    "letters.md": "# Größe\n\nDie Straße nach Йод: \ufb01n, C++ und con\xadﬁg. हिन्दी\n",
    "empty.md": "---\nauthor: Kevin Kelly\n---\n",
    "uv.lock": "locked\n",
    "CHANGES": "1.0\n---\n\nFirst.\n",
}


def test_what_a_file_becomes_in_an_index_changes_with_its_version() -> None:
    digest = hashlib.blake2b(digest_size=8)
    for path, text in {**FILES, **TEXTS}.items():
        chunks = chunk_document(path, text)
        made = [(*each, *list_columns(path, *each[:3])) for each in chunks]
        digest.update(
            repr((find_role(path, text), bool(explain_unsearched(path, text)), made)).encode()
        )
    if (VERSION, digest.hexdigest()) != RECORDED:
        pytest.fail(
            "A file becomes something else in an index than it did. Raise VERSION in"
            " llm_kb/search/index/database.py, so that every index is made anew; then write"
            f" RECORDED = (VERSION, {digest.hexdigest()!r}) with that number in this test."
        )
