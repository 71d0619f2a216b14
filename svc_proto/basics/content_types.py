"""Content types of files: by the extension of a name, and by the first bytes.

The table is our own, so that each host has the same one: Python's depends on its version and on files of the system.
`detect_format` recognizes formats whose first bytes identify them; text formats are never recognized by content, since
a wrong guess could run as a web page.
"""

import re

from svc_proto.basics.fast_frozen import fast_frozen

__all__ = ["ANY_TYPE", "CONTENT_TYPES", "SNIFFED", "FileFormat", "content_type_of", "detect_format"]

ANY_TYPE = "application/octet-stream"
SNIFFED = 64  # bytes that identify a format

_TABLE = """
application/epub+zip epub
application/geo+json geojson
application/gpx+xml gpx
application/gzip gz tgz
application/java-archive jar
application/json json
application/ld+json jsonld
application/manifest+json webmanifest
application/msword doc dot wiz
application/n-quads nq
application/n-triples nt
application/oda oda
application/pdf pdf
application/pgp-encrypted pgp
application/pkcs7-mime p7c p7m
application/postscript ps eps ai
application/rtf rtf
application/sql sql
application/toml toml
application/trig trig
application/vnd.android.package-archive apk apks xapk
application/vnd.apple.mpegurl m3u8
application/vnd.google-earth.kml+xml kml
application/vnd.google-earth.kmz kmz
application/vnd.ms-excel xls xlb
application/vnd.ms-outlook msg
application/vnd.ms-powerpoint ppt pot ppa pps pwz
application/vnd.oasis.opendocument.graphics odg
application/vnd.oasis.opendocument.presentation odp
application/vnd.oasis.opendocument.spreadsheet ods
application/vnd.oasis.opendocument.text odt
application/vnd.openxmlformats-officedocument.presentationml.presentation pptx
application/vnd.openxmlformats-officedocument.presentationml.slideshow ppsx
application/vnd.openxmlformats-officedocument.spreadsheetml.sheet xlsx
application/vnd.openxmlformats-officedocument.spreadsheetml.template xltx
application/vnd.openxmlformats-officedocument.wordprocessingml.document docx
application/vnd.openxmlformats-officedocument.wordprocessingml.template dotx
application/vnd.rar rar
application/vnd.sqlite3 db sqlite sqlite3
application/wasm wasm
application/x-7z-compressed 7z
application/x-bcpio bcpio
application/x-bittorrent torrent
application/x-bzip2 bz2
application/x-cpio cpio
application/x-csh csh
application/x-debian-package deb
application/x-dvi dvi
application/x-gtar gtar
application/x-hdf hdf
application/x-hdf5 h5
application/x-iso9660-image iso
application/x-latex latex
application/x-mif mif
application/x-mobipocket-ebook mobi prc azw
application/x-netcdf cdf nc
application/x-pkcs12 p12 pfx
application/x-pn-realaudio ram
application/x-python-code pyc pyo
application/x-sh sh
application/x-shar shar
application/x-shockwave-flash swf
application/x-subrip srt
application/x-sv4cpio sv4cpio
application/x-sv4crc sv4crc
application/x-tar tar
application/x-tcl tcl
application/x-tex tex
application/x-texinfo texi texinfo
application/x-troff roff t tr
application/x-troff-man man
application/x-troff-me me
application/x-troff-ms ms
application/x-ustar ustar
application/x-wais-source src
application/x-x509-ca-cert crt cer der pem
application/x-xz xz
application/xhtml+xml xhtml
application/xml xml xsl rdf wsdl xpdl
application/yaml yaml yml
application/zip zip
application/zstd zst
audio/3gpp2 3g2 3gpp2
audio/aac aac adts ass loas
audio/ac3 ac3
audio/aiff aiff aif aifc
audio/amr amr
audio/amr-wb awb
audio/basic au snd
audio/flac flac
audio/midi mid midi kar
audio/mp4 m4a m4b m4r
audio/mpeg mp3 mp2 mpga
audio/mpegurl m3u
audio/ogg oga ogg opus spx
audio/wav wav
audio/x-caf caf
audio/x-matroska mka
audio/x-ms-wma wma
audio/x-pn-realaudio ra
audio/x-scpls pls
font/otf otf
font/ttf ttf
font/woff woff
font/woff2 woff2
image/avif avif
image/bmp bmp
image/gif gif
image/heic heic
image/heif heif hif
image/ief ief
image/jp2 jp2
image/jpeg jpg jpeg jpe jfif pjpeg pjp
image/jxl jxl
image/png png apng
image/svg+xml svg
image/tiff tif tiff
image/vnd.adobe.photoshop psd
image/vnd.djvu djvu djv
image/vnd.microsoft.icon ico
image/webp webp
image/x-adobe-dng dng
image/x-canon-cr2 cr2
image/x-cmu-raster ras
image/x-nikon-nef nef
image/x-portable-anymap pnm
image/x-portable-bitmap pbm
image/x-portable-graymap pgm
image/x-portable-pixmap ppm
image/x-rgb rgb
image/x-sony-arw arw
image/x-xbitmap xbm
image/x-xpixmap xpm
image/x-xwindowdump xwd
message/rfc822 eml mht mhtml nws
model/gltf-binary glb
model/obj obj
model/stl stl
text/calendar ics ifb
text/css css
text/csv csv
text/html html htm
text/javascript js mjs
text/markdown md markdown
text/n3 n3
text/plain txt log text bat c h ksh pl ini cfg conf asc nfo diff patch
text/richtext rtx
text/tab-separated-values tsv
text/vcard vcf vcard
text/vtt vtt
text/x-c++src cpp cc cxx
text/x-go go
text/x-java java
text/x-kotlin kt
text/x-python py
text/x-rst rst
text/x-rust rs
text/x-setext etx
text/x-sgml sgm sgml
video/3gpp 3gp 3gpp
video/mp2t ts m2ts mts
video/mp4 mp4 m4v mp4v
video/mpeg mpeg mpg mpe m1v mpa m2v
video/ogg ogv
video/quicktime mov qt
video/webm webm
video/x-flv flv
video/x-matroska mkv
video/x-ms-asf asf
video/x-ms-wmv wmv
video/x-msvideo avi
video/x-sgi-movie movie
"""
CONTENT_TYPES = {
    extension: kind
    for kind, *extensions in (line.split() for line in _TABLE.split("\n") if line)
    for extension in extensions
}


@fast_frozen
class FileFormat:
    """A format that was recognized by its first bytes: content type, and extension without a dot."""

    content_type: str
    extension: str


_SIGNATURES = [  # in this order: the first match counts
    (re.compile(pattern, re.DOTALL), FileFormat(kind, extension))
    for pattern, kind, extension in (
        (rb"\x89PNG\r\n\x1a\n", "image/png", "png"),
        (rb"\xff\xd8\xff", "image/jpeg", "jpg"),
        (rb"GIF8[79]a", "image/gif", "gif"),
        (rb"RIFF.{4}WEBP", "image/webp", "webp"),
        (rb"BM.{4}\0\0\0\0", "image/bmp", "bmp"),
        (rb"II\*\0|MM\0\*", "image/tiff", "tiff"),
        (rb".{4}ftypavi[fs]", "image/avif", "avif"),
        (rb".{4}ftyp(?:hei[cxms]|hev[cxms])", "image/heic", "heic"),
        (rb".{4}ftyp(?:mif1|msf1)", "image/heif", "heif"),
        (rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n", "image/jxl", "jxl"),
        (rb"(?:RIFF|RF64|BW64).{4}WAVE", "audio/wav", "wav"),
        (rb"RIFF.{4}AVI ", "video/x-msvideo", "avi"),
        (rb"FORM.{4}AIF[FC]", "audio/aiff", "aiff"),
        (rb"caff", "audio/x-caf", "caf"),
        (rb"fLaC", "audio/flac", "flac"),
        (rb"OggS.{24,60}OpusHead", "audio/ogg", "opus"),
        (rb"OggS", "audio/ogg", "ogg"),
        (rb"#!AMR-WB\n", "audio/amr-wb", "awb"),
        (rb"#!AMR\n", "audio/amr", "amr"),
        (rb"ID3", "audio/mpeg", "mp3"),
        (rb"\xff[\xf0\xf1\xf8\xf9]", "audio/aac", "aac"),
        (rb"\xff[\xe2-\xe7\xf2-\xf7\xfa-\xff]", "audio/mpeg", "mp3"),
        (rb"\.snd", "audio/basic", "au"),
        (rb"MThd", "audio/midi", "mid"),
        (rb".{4}ftypM4[AB]", "audio/mp4", "m4a"),
        (rb".{4}ftyp3g", "video/3gpp", "3gp"),
        (rb".{4}ftypqt", "video/quicktime", "mov"),
        (rb".{4}ftyp", "video/mp4", "mp4"),
        (rb".{4}(?:moov|mdat|wide)", "video/quicktime", "mov"),
        (rb"\x1aE\xdf\xa3.{0,40}webm", "video/webm", "webm"),
        (rb"\x1aE\xdf\xa3", "video/x-matroska", "mkv"),
        (rb"0&\xb2u\x8ef\xcf\x11", "video/x-ms-asf", "asf"),
        (rb"%PDF-", "application/pdf", "pdf"),
        (rb"PK\x03\x04.{26}mimetypeapplication/epub\+zip", "application/epub+zip", "epub"),
        (rb"PK(?:\x03\x04|\x05\x06)", "application/zip", "zip"),
        (rb"\x1f\x8b\x08", "application/gzip", "gz"),
        (rb"BZh[1-9]", "application/x-bzip2", "bz2"),
        (rb"\xfd7zXZ\0", "application/x-xz", "xz"),
        (rb"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed", "7z"),
        (rb"Rar!\x1a\x07", "application/vnd.rar", "rar"),
        (rb"\x28\xb5\x2f\xfd", "application/zstd", "zst"),
        (rb"SQLite format 3\0", "application/vnd.sqlite3", "sqlite"),
    )
]
TAG_HEAD = 10  # bytes of the head of an ID3v2 tag


def content_type_of(name: str | None) -> str:
    """Return the content type by the extension of a file name; `ANY_TYPE` if it is unknown."""
    _, dot, extension = (name or "").rpartition(".")
    return CONTENT_TYPES.get(extension.lower(), ANY_TYPE) if dot else ANY_TYPE


def detect_format(start: bytes) -> FileFormat | None:
    """Return the format by the first bytes of a file, `SNIFFED` or more; an ID3v2 tag before another format is skipped.

    None if no signature matches.
    """
    found = next((form for pattern, form in _SIGNATURES if pattern.match(start)), None)
    if found is not None and start.startswith(b"ID3") and len(start) > TAG_HEAD:
        size = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(reversed(start[6:TAG_HEAD])))  # ID3v2, 6.2
        return detect_format(start[TAG_HEAD + size :]) or found
    return found
