"""Writer of small PDF files."""

__all__ = ["one_page_pdf"]


def one_page_pdf(text: str) -> bytes:
    """Return a PDF file with one page for each line of the text."""
    lines = text.split("\n")
    pages = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(lines)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{pages}]/Count {len(lines)}>>".encode(),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for n, line in enumerate(lines):
        stream = f"BT /F1 12 Tf 72 720 Td ({line}) Tj ET".encode()
        page = f"<</Type/Page/Parent 2 0 R/Resources<</Font<</F1 3 0 R>>>>/Contents {5 + 2 * n} 0 R>>"
        objects += [page.encode(), b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream)]
    file, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, content in enumerate(objects, 1):
        places.append(len(file))
        file += b"%d 0 obj%s\nendobj\n" % (number, content)
    start = len(file)
    file += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    file += b"".join(b"%010d 00000 n \n" % place for place in places)
    file += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(file)
