"""Content types by the name of a file, and by its first bytes."""

from mimetypes import MimeTypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_proto.basics.content_types import ANY_TYPE, CONTENT_TYPES, SNIFFED, content_type_of, detect_format
from svc_proto.relay.media.media_service import content_type_field

OWN = """
3gp 3gpp aif aifc aiff js m3u mid midi mjs obj opus rtf srt vcf wav webp xml
"""


def test_each_extension_that_python_knows_has_the_same_type_or_one_of_our_own() -> None:
    theirs = MimeTypes(filenames=()).types_map[True]
    known = {extension[1:]: kind for extension, kind in theirs.items() if kind != ANY_TYPE}
    differing = {extension for extension, kind in known.items() if CONTENT_TYPES.get(extension) != kind}
    assert differing <= set(OWN.split())


def test_each_row_is_well_formed_and_unique() -> None:
    assert len(CONTENT_TYPES) > 250
    for extension, kind in CONTENT_TYPES.items():
        assert extension == extension.lower()
        assert content_type_field(kind, "x") == kind
    assert list(CONTENT_TYPES.values()) == sorted(CONTENT_TYPES.values())


PHONE_FILES = """
a.webp image/webp; a.heic image/heic; a.heif image/heif; a.jfif image/jpeg; a.opus audio/ogg; a.m4a audio/mp4
a.3gp video/3gpp; a.amr audio/amr; a.m4v video/mp4; a.avi video/x-msvideo; a.mpg video/mpeg; a.m4b audio/mp4
a.mid audio/midi; a.aiff audio/aiff; a.apk application/vnd.android.package-archive; a.vcf text/vcard
a.ics text/calendar; a.eml message/rfc822; a.7z application/x-7z-compressed; a.gpx application/gpx+xml
a.kml application/vnd.google-earth.kml+xml; a.ods application/vnd.oasis.opendocument.spreadsheet
a.tsv text/tab-separated-values; a.PDF application/pdf; a.tar.gz application/gzip; a.sh application/x-sh
.png image/png; png application/octet-stream; a. application/octet-stream; a.b/c application/octet-stream
"""


@pytest.mark.parametrize("row", [row.strip() for line in PHONE_FILES.split("\n") for row in line.split(";") if row])
def test_content_type_of_a_name(row: str) -> None:
    name, kind = row.split()
    assert content_type_of(name) == kind


def test_no_name_has_no_type() -> None:
    assert content_type_of(None) == content_type_of("") == ANY_TYPE


FTYP = b"\0\0\0\x18ftyp"
TAG = b"ID3\3\0\0\0\0\x01\x04" + bytes(132)


@pytest.mark.parametrize(
    ("starts", "extension"),
    [
        ([b"\x89PNG\r\n\x1a\n"], "png"),
        ([b"\xff\xd8\xff\xe0"], "jpg"),
        ([b"GIF89a"], "gif"),
        ([b"RIFF\0\0\0\0WEBPVP8 "], "webp"),
        ([b"BM\1\2\3\4\0\0\0\0"], "bmp"),
        ([b"II*\0", b"MM\0*"], "tiff"),
        ([FTYP + b"avif"], "avif"),
        ([FTYP + b"heic"], "heic"),
        ([FTYP + b"mif1"], "heif"),
        ([b"RIFF\0\0\0\0WAVE", b"RF64\xff\xff\xff\xffWAVE"], "wav"),
        ([b"RIFF\0\0\0\0AVI "], "avi"),
        ([b"FORM\0\0\0\0AIFF", b"FORM\0\0\0\0AIFC", TAG + TAG + b"FORM\0\0\0\0AIFF"], "aiff"),
        ([b"caff\0\1"], "caf"),
        ([b"fLaC", TAG + b"fLaC"], "flac"),
        ([b"OggS" + bytes(24) + b"OpusHead"], "opus"),
        ([b"OggS" + bytes(24) + b"\1vorbis"], "ogg"),
        ([b"#!AMR\n"], "amr"),
        ([b"#!AMR-WB\n"], "awb"),
        ([b"\xff\xf1\x50"], "aac"),
        ([b"\xff\xfb\x90", b"\xff\xf3\x48", b"\xff\xe3\x18", TAG, b"ID3", TAG + b"\xff\xfb\x90"], "mp3"),
        ([FTYP + b"M4A "], "m4a"),
        ([FTYP + b"3gp4"], "3gp"),
        ([FTYP + b"qt  ", b"\0\0\0\0moov"], "mov"),
        ([FTYP + b"isom"], "mp4"),
        ([b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\x82\x84webm"], "webm"),
        ([b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\x82\x88matroska"], "mkv"),
        ([b"0&\xb2u\x8ef\xcf\x11"], "asf"),
        ([b"%PDF-1.7"], "pdf"),
        ([b"PK\3\4" + bytes(26) + b"mimetypeapplication/epub+zip"], "epub"),
        ([b"PK\3\4"], "zip"),
        ([b"\x1f\x8b\x08"], "gz"),
        ([b"<html>", b"plain text", b""], None),
    ],
)
def test_detect_format(starts: list[bytes], extension: str | None) -> None:
    for start in starts:
        found = detect_format(start + b" " * SNIFFED if start else b"")
        assert (found and found.extension) == extension
        if found is not None:
            assert found.content_type == CONTENT_TYPES[found.extension]


@given(st.binary(max_size=SNIFFED))
def test_any_bytes_can_be_judged(start: bytes) -> None:
    found = detect_format(start)
    assert found is None or found.extension in CONTENT_TYPES
