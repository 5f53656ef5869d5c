"""A server that speaks enough of S3 for tests: whole objects, listings, conditional PUTs; it counts what it is asked.

Refuses a PUT with If-None-Match: * over an object, and one with If-Match over another than that (as S3 does since
2024); told not to, it takes every PUT, as stores of before do. Not a client's business: signatures, versions, ACLs.
"""

import threading
from contextlib import contextmanager
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

LISTED = '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult><IsTruncated>false</IsTruncated>{}</ListBucketResult>'
WHEN = "2026-11-22T10:00:00.000Z"


class ObjectStore(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects, self.asked, self.guard = {}, [], threading.Lock()
        self.conditional, self.away = True, False

    def count(self):
        """How many requests came since the last time this was asked, by method."""
        with self.guard:
            asked, self.asked = self.asked, []
        return {method: asked.count(method) for method in sorted(set(asked))}

    @property
    def environment(self):
        return {
            "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_port}", "AWS_EC2_METADATA_DISABLED": "true",
        }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if self.command != "HEAD" else b"")

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        else:
            body = b"".join(iter(lambda: chunk(self.rfile), b""))
            self.rfile.readline()
        if not self.headers.get("x-amz-content-sha256", "").startswith("STREAMING-"):
            return body
        pieces = BytesIO(body)
        return b"".join(iter(lambda: chunk(pieces), b""))

    def handle_any(self):
        url, store = urlsplit(self.path), self.server
        body, key = self.body(), unquote(url.path).lstrip("/")
        query = parse_qs(url.query, keep_blank_values=True)
        with store.guard:
            store.asked.append("LIST" if "list-type" in query else self.command)
            if store.away:
                return self.answer(403)  # a client asks again for seconds where a store says 503
            if "list-type" in query:
                return self.answer(200, listed(store.objects, key.strip("/"), query).encode())
            return self.of_object(store, key, body)

    def of_object(self, store, key, body):
        there = store.objects.get(key)
        if self.command == "PUT":
            wanted = self.headers.get("If-Match")
            taken = self.headers.get("If-None-Match") == "*" and there is not None
            if store.conditional and (taken or (wanted and (there is None or wanted != etag(there)))):
                return self.answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            store.objects[key] = body
            return self.answer(200, ETag=etag(body))
        if self.command == "DELETE":
            store.objects.pop(key, None)
            return self.answer(204)
        if there is None:
            return self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        head = {"ETag": etag(there), "Last_Modified": "Sun, 22 Nov 2026 10:00:00 GMT"}
        if self.command == "HEAD":
            return self.answer(200, Content_Length=str(len(there)), **head)
        if (part := self.headers.get("Range")) is not None:
            first, last = part.removeprefix("bytes=").split("-")
            piece = there[int(first) : int(last) + 1 if last else None]
            span = f"bytes {first}-{int(first) + len(piece) - 1}/{len(there)}"
            return self.answer(206, piece, Content_Range=span, **head)
        return self.answer(200, there, **head)


for METHOD in ("GET", "PUT", "HEAD", "DELETE", "POST"):
    setattr(Handler, f"do_{METHOD}", Handler.handle_any)


def chunk(file):
    """The next one; empty at the end. So do HTTP and Amazon's own framing inside of it, with a signature behind `;`."""
    piece = file.read(int(file.readline().partition(b";")[0], 16))
    if piece:
        file.readline()
    return piece


def etag(body):
    return f'"{md5(body, usedforsecurity=False).hexdigest()}"'


def listed(objects, bucket, query):
    prefix, delimiter, after = (query.get(name, [""])[0] for name in ("prefix", "delimiter", "start-after"))
    folders, found = set(), []
    for name, body in sorted(objects.items()):
        inside = name.removeprefix(f"{bucket}/")
        if not inside.startswith(prefix) or (after and inside <= after):
            continue
        head, cut, _ = inside[len(prefix) :].partition(delimiter) if delimiter else (inside, "", "")
        if cut:
            folders.add(prefix + head + cut)
        else:
            size = f"<Size>{len(body)}</Size><ETag>{escape(etag(body))}</ETag><LastModified>{WHEN}</LastModified>"
            found.append(f"<Contents><Key>{escape(inside)}</Key>{size}</Contents>")
    many = f"<KeyCount>{len(found) + len(folders)}</KeyCount>"
    return LISTED.format(
        many
        + "".join(found)
        + "".join(f"<CommonPrefixes><Prefix>{escape(f)}</Prefix></CommonPrefixes>" for f in sorted(folders))
    )


@contextmanager
def running():
    store = ObjectStore()
    thread = threading.Thread(target=store.serve_forever, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        store.shutdown()
        store.server_close()
        thread.join(5)
