"""URLs in expressions: `url("https://example.com:80/a?b=c").getHost()`.

A text is a URL when it has a scheme or is an absolute path, as Go's `url.ParseRequestURI` has it.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_plus

from nodeward.base.fielderror import quote
from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.values import CelMap, EvaluationError, ExtensionValue

URL: Final = t.struct("kubernetes.URL")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_PLAIN_PATH: Final = re.compile(r"[A-Za-z0-9\-._~$&+,/:;=@!'()*\[\]%]*")
_PORT: Final = re.compile(r"(?::[0-9]*)?")


class UrlError(ValueError):
    """The text is no URL. The message is Go's."""


class UrlValue(ExtensionValue):
    """A parsed URL."""

    __slots__ = ("host", "path", "query", "scheme", "text")
    cel_type = URL

    def __init__(self, text: str, scheme: str, host: str, path: str, query: str) -> None:
        self.text = text
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query

    @property
    def hostname(self) -> str:
        return self._split()[0]

    @property
    def port(self) -> str:
        return self._split()[1]

    def _split(self) -> tuple[str, str]:
        host, port = self.host, ""
        colon = host.rfind(":")
        if colon >= 0 and _PORT.fullmatch(host[colon:]):
            host, port = host[:colon], host[colon + 1 :]
        if host.startswith("[") and host.endswith("]"):
            host = host[1:-1]
        return host, port

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UrlValue) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


def parse_url(text: str) -> UrlValue:
    """Parse as Go's `url.ParseRequestURI`; raises UrlError."""
    try:
        return _parse(text)
    except UrlError as error:
        raise UrlError(f"parse {quote(text)}: {error}") from None


def _parse(text: str) -> UrlValue:
    if any(ord(character) < 0x20 or ord(character) == 0x7F for character in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text:
        raise UrlError("empty url")
    if text == "*":
        return UrlValue(text, "", "", "*", "")
    scheme, rest = _scheme(text)
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:  # opaque, such as mailto:
            return UrlValue(text, scheme, "", "", query)
        raise UrlError("invalid URI for request")
    host = ""
    if scheme and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        host, rest = _host(authority), slash + path
    if wrong := _ESCAPE.search(rest):
        raise UrlError(f"invalid URL escape {quote(rest[wrong.start() : wrong.start() + 3])}")
    return UrlValue(text, scheme, host, rest, query)


def _scheme(text: str) -> tuple[str, str]:
    if match := _SCHEME.match(text):
        return match[1].lower(), text[match.end() :]
    head = re.split(r"[/?#]", text, maxsplit=1)[0]
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    if ":" in head and not text.startswith("/"):
        raise UrlError("first path segment in URL cannot contain colon")
    return "", text


def _host(authority: str) -> str:
    host = authority.rpartition("@")[2]
    if host.startswith("["):
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        port = host[end + 1 :]
        if not _PORT.fullmatch(port):
            raise UrlError(f"invalid port {quote(port)} after host")
        return host
    colon = host.rfind(":")
    if colon >= 0 and not _PORT.fullmatch(host[colon:]):
        raise UrlError(f"invalid port {quote(host[colon:])} after host")
    for character in host:
        if character in ' "<>\\^`{|}#':
            raise UrlError(f"invalid character {quote(character)} in host name")
    if wrong := re.search("%.{0,2}", host):
        raise UrlError(f"invalid URL escape {quote(wrong.group())}")
    return host


def _url(text: str) -> UrlValue:
    try:
        return parse_url(text)
    except UrlError as error:
        raise EvaluationError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except UrlError:
        return False
    return True


def _escaped_path(url: UrlValue) -> str:
    if _PLAIN_PATH.fullmatch(url.path):
        return url.path
    return "".join(
        each if _PLAIN_PATH.fullmatch(each) else "".join(f"%{byte:02X}" for byte in each.encode())
        for each in url.path
    )


def _query(url: UrlValue) -> CelMap:
    found: dict[str, list[str]] = {}
    for part in url.query.partition("#")[0].split("&"):
        key, _, value = part.partition("=")
        if part and ";" not in part and not _ESCAPE.search(part):
            found.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    result = CelMap()
    for key, values in found.items():
        result.insert(key, values)
    return result


def _member(name: str, id_: str, result: t.CelType, run: Implementation) -> Function:
    return Function(name, (Overload(id_, (URL,), result, run, is_member=True),))


URLS: Final = (
    Function("url", (Overload("string_to_url", (t.STRING,), URL, _url),)),
    _member("getScheme", "url_get_scheme", t.STRING, lambda url: url.scheme),
    _member("getHost", "url_get_host", t.STRING, lambda url: url.host),
    _member("getHostname", "url_get_hostname", t.STRING, lambda url: url.hostname),
    _member("getPort", "url_get_port", t.STRING, lambda url: url.port),
    _member("getEscapedPath", "url_get_escaped_path", t.STRING, _escaped_path),
    _member("getQuery", "url_get_query", t.map_of(t.STRING, t.list_of(t.STRING)), _query),
    Function("isURL", (Overload("is_url_string", (t.STRING,), t.BOOL, _is_url),)),
)
