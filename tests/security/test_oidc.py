"""Signing in at a provider of OpenID Connect, by people and by those who would be somebody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from opmon.config import Settings
from opmon.errors import ConfigError, UnavailableError
from opmon.oidc import provider as opmons
from opmon.oidc.flow import Flow
from opmon.outgoing.breaker import breakers
from opmon.store import annotators, audit
from opmon.store.audit import Act
from opmon.store.schema import annotators as annotators_of_schema
from opmon.store.schema import audit as audit_of_schema
from opmon.store.schema import sessions
from opmon.web import identity
from opmon.web.cookies import COOKIE
from opmon.web.identity import Door
from opmon.web.pages import provider as pages
from opmon.web.server import Server
from tests.made_once import new_opmon_database
from tests.security.attacked import API, free_port
from tests.security.provider import CLIENT, SECRET, Key, Provider, by_hmac, running, token, unsigned
from tests.web.world import World, monitor

MONITORS = {name: monitor(classes=["x", "y"]) for name in ("a", "b")}
ROLES: dict[str, Any] = {"ops": "operator", "labellers": {"role": "annotator", "monitors": ["a"]}}
FIRST, SECOND, CURVED = Key("first"), Key("second"), Key("curved", "ES256")


@pytest.fixture(scope="module")
def at_work() -> Iterator[Provider]:
    with running(Provider(key=FIRST)) as made:
        yield made


@pytest.fixture
def provider(at_work: Provider) -> Provider:
    """The provider, as honest as it was at first."""
    fresh = Provider(at_work.port, key=FIRST)
    for name, value in vars(fresh).items():
        setattr(at_work, name, value)
    breakers.clear()
    return at_work


@pytest.fixture(scope="module")
def serving(at_work: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("oidc")
    new_opmon_database(folder / "opmon.db")
    listen = f"127.0.0.1:{free_port()}"
    world = World.of(f"sqlite:///{folder}/opmon.db", folder, MONITORS, listen=listen, oidc=keys_of(at_work))
    with world.served() as server:
        yield server


@pytest.fixture
def server(serving: Server, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The pages, with nobody known and nothing remembered."""
    monkeypatch.setattr(identity, "REMEMBERED", 0.0)
    with serving.store.write() as connection:
        for table in (sessions, annotators_of_schema, audit_of_schema):
            connection.execute(table.delete())
    site, own = serving.site, serving.settings
    assert own.web.oidc is not None
    site.take(own)
    site.door, site.provider = Door(own, serving.store, site.clock), opmons.Provider(own.web.oidc)
    return serving


def keys_of(provider: Provider, **keys: object) -> dict[str, Any]:
    own = {"issuer": provider.issuer, "client_id": CLIENT, "client_secret": SECRET, "roles": ROLES, "patience": "2s"}
    return {**own, **keys}


Browser = Callable[..., httpx.Client]


@pytest.fixture
def browser(server: Server) -> Iterator[Browser]:
    made: list[httpx.Client] = []

    def browser(**more: Any) -> httpx.Client:
        made.append(httpx.Client(base_url=server.url, **more))
        return made[-1]

    yield browser
    for each in made:
        each.close()


def away(browser: httpx.Client, next: str = "/monitors/a") -> str:
    """Where the provider sends a browser back to that began to sign in."""
    there = browser.get("/oidc/start", params={"next": next})
    assert there.status_code == 303, there.text
    back = httpx.get(there.headers["location"])
    return str(back.headers["location"])


def lets_in(answer: httpx.Response) -> bool:
    """Whether the browser is given a session."""
    return any(name.startswith(COOKIE) for name in answer.cookies)


def words(answer: httpx.Response) -> str:
    assert not lets_in(answer)
    assert SECRET not in answer.text
    return " ".join(answer.text.partition('role="alert">')[2].partition("<")[0].split())


def test_somebody_signs_in_and_is_what_their_groups_may(server: Server, browser: Browser, provider: Provider) -> None:
    ann = browser()
    assert server.site.provider is not None
    assert server.site.provider.check() == f"127.0.0.1:{provider.port} answers, with 1 key"
    page = ann.get("/sign-in?next=/monitors/a").text
    assert f"Sign in at 127.0.0.1:{provider.port}" in page
    answer = ann.get(away(ann))
    assert 'http-equiv="refresh" content="0; url=/monitors/a"' in answer.text
    cookie = next(line for line in answer.headers.get_list("set-cookie") if line.startswith(f"{COOKIE}_"))
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Max-Age=43200" in cookie
    assert ann.get(f"{API}/me").json() | {"csrf": ""} == {
        "name": "ann",
        "role": "operator",
        "monitors": None,
        "by": "session",
        "csrf": "",
    }
    assert pages.COOKIE not in ann.cookies, "the secret of the sign-in is gone"
    with server.store.read() as connection:
        told = audit.listing(connection, act=Act.SIGNED_IN)
    assert [(each.who, each.known_by) for each in told] == [("ann", "oidc")]
    provider.person = {"preferred_username": "Zoë", "groups": ["labellers", "others"]}
    zoe = browser()
    zoe.get(away(zoe))
    assert zoe.get(f"{API}/me").json() | {"csrf": ""} == {
        "name": "Zoë",
        "role": "annotator",
        "monitors": ["a"],
        "by": "session",
        "csrf": "",
    }
    assert zoe.get(f"{API}/status").status_code == 403
    csrf = ann.get("/monitors/a").text.split('data-csrf="')[1].split('"')[0]
    out = ann.post("/sign-out", data={"csrf": csrf})
    assert out.headers["location"] == "/sign-in?out=1"
    assert f"{provider.issuer}/end?client_id=opmon&amp;post_logout_redirect_uri=" in ann.get("/sign-in?out=1").text
    assert ann.get(f"{API}/me").status_code == 401


def test_what_changes_something_needs_the_token_of_the_page(browser: Browser) -> None:
    ann = browser()
    ann.get(away(ann))
    assert ann.post(f"{API}/monitors/a/take", json={"count": 1}).status_code == 403


def test_who_is_in_no_group_or_was_sent_away_stays_out(server: Server, browser: Browser, provider: Provider) -> None:
    provider.person["groups"] = ["others"]
    ann = browser()
    assert "is in no group that may use opmon" in words(ann.get(away(ann)))
    provider.person["groups"] = ["ops"]
    world = World(server.settings, server.store)
    world.invite("ann", "viewer")
    ann.get(away(ann))
    assert ann.get(f"{API}/me").json()["role"] == "viewer", "what somebody was given goes before their groups"
    with server.store.write() as connection:
        annotators.revoke(connection, "ann", server.site.clock())
    assert ann.get(f"{API}/me").status_code == 403
    assert "was let in once and is no more" in words(ann.get(away(ann)))


def test_roles_and_the_provider_go_by_the_configuration_as_it_is_now(server: Server, browser: Browser) -> None:
    ann = browser()
    ann.get(away(ann))
    web = server.settings.web
    assert web.oidc is not None
    viewers = web.oidc.model_copy(update={"roles": {}, "role": "viewer"})
    server.site.take(server.settings.model_copy(update={"web": web.model_copy(update={"oidc": viewers})}))
    assert ann.get(f"{API}/me").json()["role"] == "viewer"
    server.site.take(server.settings.model_copy(update={"web": web.model_copy(update={"oidc": None})}))
    assert ann.get(f"{API}/me").status_code == 401
    assert ann.get("/oidc/start").status_code == 404


def changed(**claims: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda given: {k: v for k, v in {**given, **claims}.items() if v is not None}


LIES: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "nonce": (changed(nonce="another"), "belongs to another sign-in"),
    "no nonce": (changed(nonce=None), "belongs to another sign-in"),
    "issuer": (changed(iss="https://evil.example.com"), "is of another issuer"),
    "audience": (changed(aud="another"), "is for somebody else"),
    "audiences": (changed(aud=["opmon", "another"]), "is for somebody else"),
    "party": (changed(azp="another"), "is for somebody else"),
    "over": (changed(exp=int(time.time()) - 61), "has run out"),
    "no end": (changed(exp=None), "has no exp"),
    "text": (changed(exp="never"), "has no exp"),
    "not a number": (changed(exp=float("nan")), "has no exp"),
    "future": (changed(iat=int(time.time()) + 600), "is of the future"),
    "not before": (changed(nbf=int(time.time()) + 600), "is of the future"),
    "nobody": (changed(sub=None), "names nobody"),
    "no name": (changed(preferred_username=None), "has no name in &#39;preferred_username&#39;"),
    "a list": (changed(preferred_username=["ann"]), "has no name"),
    "the truth": (changed(preferred_username="truth"), "told no name"),
    "unseen": (changed(preferred_username="a\u202enn"), "told no name"),
}


@pytest.mark.parametrize("lie", LIES)
def test_tokens_that_say_what_cannot_be(browser: Browser, provider: Provider, lie: str) -> None:
    provider.claims, why = LIES[lie]
    ann = browser()
    assert why in words(ann.get(away(ann)))
    assert ann.get(f"{API}/me").status_code == 401


def edited(key: Key, claims: dict[str, Any]) -> str:
    """Signed, and then changed."""
    head, _, signature = token(key, {**claims, "preferred_username": "eve"}).split(".")
    return f"{head}.{token(key, claims).split('.')[1]}.{signature}"


def stripped(key: Key, claims: dict[str, Any]) -> str:
    return token(key, claims).rpartition(".")[0] + "."


FORGED: dict[str, tuple[Callable[[Key, dict[str, Any]], Any], str]] = {
    "none": (lambda key, claims: unsigned(claims), "is signed with"),
    "None": (lambda key, claims: unsigned(claims, "nOnE"), "is signed with"),
    "hmac": (by_hmac, "is signed with"),
    "no signature": (stripped, "is not signed by the provider"),
    "changed": (edited, "is not signed by the provider"),
    "another's key": (
        lambda key, claims: token(replace(SECOND, name="first"), claims),
        "is not signed by the provider",
    ),
    "an unknown key": (lambda key, claims: token(SECOND, claims), "a key that the provider does not have"),
    "its own key": (lambda key, claims: token(replace(SECOND, name="x"), claims, jwk=SECOND.public), "does not have"),
    "another kind": (lambda key, claims: token(key, claims, alg="ES256"), "does not have"),
    "critical": (lambda key, claims: token(key, claims, crit=["exp"]), "asks for more than opmon knows"),
    "nothing": (lambda key, claims: None, "is no signed token"),
    "a mapping": (lambda key, claims: claims, "is no signed token"),
    "long": (lambda key, claims: "a" * 200_000, "is no signed token"),
    "nonsense": (lambda key, claims: "a.b.c", "cannot be read"),
    "deep": (lambda key, claims: f"{'W1tb' * 20_000}.{'W1tb' * 100}.YQ", "cannot be read"),
}


@pytest.mark.parametrize("form", FORGED)
def test_tokens_that_the_provider_did_not_sign(browser: Browser, provider: Provider, form: str) -> None:
    provider.token, why = FORGED[form]
    ann = browser()
    assert why in words(ann.get(away(ann)))


def test_answers_that_no_browser_waited_for(browser: Browser, provider: Provider) -> None:
    """Another's state or cookie, a code that was used, a browser that began nothing: nobody is let in."""
    ann, eve = browser(), browser()
    hers, evil = away(ann), away(eve)
    assert "was not begun in this browser" in words(browser().get(hers))
    assert "was not begun in this browser" in words(ann.get(evil)), "else Ann would be signed in as somebody else"
    hers = away(ann)
    assert "was not begun in this browser" in words(ann.get(hers + "x"))
    hers = away(ann)
    eve.cookies.set(pages.COOKIE, ann.cookies[pages.COOKIE], path="/oidc")
    used = ann.get(hers)
    assert lets_in(used)
    assert "does not take this sign-in (invalid_grant)" in words(eve.get(hers)), "a code is good once"
    ann = browser()
    state = parse_qs(urlsplit(away(ann)).query)["state"][0]
    assert "let nobody in: access_denied" in words(
        ann.get("/oidc/back", params={"state": state, "error": "access_denied"})
    )
    ann = browser()
    hers = away(ann)
    assert "of another provider" in words(ann.get(f"{hers}&iss=https://evil.example.com"))


def test_a_sign_in_that_was_made_up_for_a_browser_without_a_cookie(browser: Browser, server: Server) -> None:
    """State, nonce and verifier that follow from no secret are known to whoever wants Ann to work in Eve's name."""
    assert server.site.provider is not None
    made_up = Flow(server.site.provider, f"{server.site.settings.web.address}/oidc/back").address("")
    back = str(httpx.get(made_up).headers["location"])
    ann = browser()
    assert "was not begun in this browser" in words(ann.get(back))
    assert "was not begun in this browser" in words(ann.get(back, headers={"cookie": f"{pages.COOKIE}=./"}))


def test_another_browsers_code_needs_the_verifier(browser: Browser) -> None:
    """Whoever puts a stolen code into a sign-in of their own lacks what the provider asks for with it (PKCE)."""
    ann, eve = browser(), browser()
    code = parse_qs(urlsplit(away(ann)).query)["code"][0]
    state = parse_qs(urlsplit(away(eve)).query)["state"][0]
    assert "invalid_grant" in words(eve.get("/oidc/back", params={"code": code, "state": state}))


@pytest.mark.parametrize(
    "target",
    ["https://evil.example.com", "//evil.example.com", "/\\evil.example.com", "javascript:attacked()",
     "/\t/evil.example.com", '/"><script>attacked()</script>', "/;url=https://evil.example.com",
     "/ 0; url=//evil.example.com"],
)  # fmt: skip
def test_nobody_is_sent_on_to_another_site(browser: Browser, target: str) -> None:
    ann = browser()
    page = ann.get(away(ann, target)).text
    assert "<script>" not in page
    where = page.split('content="0; url=')[1].split('"')[0]
    assert where.startswith("/")
    assert not where.startswith(("//", "/\\"))
    assert urlsplit(f"http://own{where}").netloc == "own"
    assert ";" not in where


def test_the_host_that_a_request_names_changes_nothing(browser: Browser, server: Server) -> None:
    for head in ({"host": "evil.example.com"}, {"x-forwarded-host": "evil.example.com", "x-forwarded-proto": "https"}):
        there = browser().get("/oidc/start", headers=head).headers["location"]
        assert parse_qs(urlsplit(there).query)["redirect_uri"] == [f"{server.settings.web.address}/oidc/back"]


def test_a_key_may_change_and_a_made_up_one_is_not_asked_for_again(browser: Browser, provider: Provider) -> None:
    ann = browser()
    ann.get(away(ann))
    provider.token = lambda key, claims: token(SECOND, claims)
    for _ in range(3):
        assert "does not have" in words(ann.get(away(ann)))
    assert provider.asked.count("/keys") == 1
    provider.token, provider.key = token, SECOND
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(opmons, "_KEYS_AT_MOST_EVERY", 0.0)
        assert lets_in(ann.get(away(ann)))
    assert provider.asked.count("/.well-known/openid-configuration") == 1


def test_elliptic_keys_and_clocks_that_differ(browser: Browser, provider: Provider) -> None:
    provider.key = CURVED
    provider.claims = changed(iat=int(time.time()) + 40, exp=int(time.time()) - 20, aud=["opmon"], azp="opmon")
    ann = browser()
    assert lets_in(ann.get(away(ann)))
    provider.token = lambda key, claims: token(key, claims)[:-4]
    assert "is not signed by the provider" in words(ann.get(away(ann)))


def test_short_keys_are_not_believed(browser: Browser, provider: Provider) -> None:
    provider.key = Key("short", bits=1024)
    ann = browser()
    assert "fewer than 2048 bits" in words(ann.get(away(ann)))


@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"issuer": "https://evil.example.com"}, "write its own words in web: oidc: issuer"),
        ({"token_endpoint": "http://evil.example.com/token"}, "has no token_endpoint that is a safe address"),
        ({"authorization_endpoint": "javascript:attacked()"}, "has no authorization_endpoint that is a safe address"),
        ({"jwks_uri": "file:///etc/passwd"}, "has no jwks_uri that is a safe address"),
        ({"jwks_uri": None}, "has no jwks_uri"),
    ],
)
def test_a_provider_that_describes_itself_wrongly(
    server: Server, browser: Browser, provider: Provider, about: Any, why: str
) -> None:
    provider.about = about
    assert server.site.provider is not None
    with pytest.raises(UnavailableError, match=why):
        server.site.provider.check()
    answer = browser().get("/oidc/start")
    assert answer.status_code == 503
    assert why in words(answer)


def test_a_wrong_secret_is_told_to_whoever_runs_opmon(server: Server, browser: Browser) -> None:
    assert server.site.provider is not None
    server.site.provider.settings = server.site.provider.settings.model_copy(update={"client_secret": None})
    ann = browser()
    assert "does not know opmon (invalid_client): check client_id and client_secret" in words(ann.get(away(ann)))


def test_a_provider_that_hangs_keeps_nobody_else_waiting(server: Server, browser: Browser, provider: Provider) -> None:
    from concurrent.futures import ThreadPoolExecutor

    provider.slow = 30
    with ThreadPoolExecutor(12) as pool:
        begun = [pool.submit(browser().get, "/oidc/start") for _ in range(12)]
        began = time.monotonic()
        assert browser().get("/sign-in").status_code == 200
        assert time.monotonic() - began < 2
        told = [words(each.result()) for each in begun]
    assert any("did not answer within 2 s" in each for each in told)
    assert any("is slow to answer others" in each for each in told)
    assert "is left alone" in words(browser().get("/oidc/start"))


def test_whoever_tries_again_and_again_is_held_up(browser: Browser, provider: Provider) -> None:
    eve = browser()
    told = []
    for _ in range(12):
        state = parse_qs(urlsplit(away(eve)).query)["state"][0]
        told.append(eve.get("/oidc/back", params={"code": "x", "state": state}))
    assert [each.status_code for each in told] == [401] * 10 + [429] * 2
    assert int(told[-1].headers["retry-after"]) >= 1
    ann = browser()
    assert lets_in(ann.get(away(ann))), "whoever shares an address with her is let in"


def test_who_began_no_sign_in_holds_up_nobody(browser: Browser, provider: Provider) -> None:
    """Behind a proxy all browsers have one address: else anybody could close it."""
    eve = browser()
    told = [eve.get("/oidc/back?code=x&state=y").status_code for _ in range(30)]
    assert told == [401] * 30
    assert "/token" not in provider.asked
    ann = browser()
    assert lets_in(ann.get(away(ann)))


@pytest.mark.parametrize(
    ("web", "why"),
    [
        ({"oidc": {"issuer": "http://login.example.com"}}, "must be the https:// address that the provider calls"),
        ({"oidc": {"issuer": "https://u:p@login.example.com"}}, "must be the https:// address"),
        ({"oidc": {"client_id": ""}}, "must be the id that the provider gave opmon"),
        ({"oidc": {"client_secret": "a\nb"}}, "must be the secret that the provider gave opmon"),
        ({"oidc": {"scopes": "profile"}}, "must hold openid"),
        ({"oidc": {"roles": {"x": {"role": "viewer", "monitors": ["nothing"]}}}}, "there is no such monitor"),
        ({"oidc": {"rolls": {}}}, "did you mean 'role"),
        ({"url": "http://opmon.example.com"}, "must be the https:// address of these pages"),
        ({"listen": "0.0.0.0:8080"}, "must be the https:// address of these pages"),
        ({"identity": {"header": "X-User", "trusted": ["10.0.0.1"]}}, "exclude each other"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_told_at_the_start(web: dict[str, Any], why: str) -> None:
    own = {"issuer": "https://login.example.com", "client_id": "opmon", "client_secret": SECRET, **web.pop("oidc", {})}
    with pytest.raises(ConfigError) as told:
        Settings.from_mapping({"monitors": MONITORS, "web": {"oidc": own, **web}})
    assert why in str(told.value)
    assert SECRET not in str(told.value)
