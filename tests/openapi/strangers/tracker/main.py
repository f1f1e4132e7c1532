"""An issue tracker: accounts with JSON Web Tokens, pages, versions and roles."""

from __future__ import annotations

import datetime as dt
from typing import Literal

import attrs
from attrs.validators import and_, ge, le, matches_re, max_len, min_len
from typing_extensions import TypedDict

from core import (
    Bindings,
    CoreError,
    D1Database,
    D1Error,
    KVNamespace,
    Request,
    Response,
    Secret,
    ValidationError,
    allow,
    create_app,
    optional,
    passwords,
)
from core.middleware.jwt import jwt_auth
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.secure_headers import secure_hdrs
from core.middleware.timeout import timeout
from core.pagination import cursor_of, page_of


@attrs.frozen
class Env(Bindings):
    DB: D1Database
    COUNTS: KVNamespace
    JWT_SECRET: Secret


@attrs.frozen
class User:
    sub: str
    role: Literal["member", "admin"]

    @property
    def id(self) -> int:
        return int(self.sub)


@attrs.frozen
class Credentials:
    email: str = attrs.field(validator=matches_re(r"[^@\s]+@[^@\s]+"))
    password: str = attrs.field(validator=min_len(8))


@attrs.frozen
class Account:
    id: int
    email: str
    password: str
    role: Literal["member", "admin"]


class Project(TypedDict):
    id: int
    slug: str
    name: str
    owner: int
    archived: bool


@attrs.frozen
class NewProject:
    slug: str = attrs.field(validator=and_(min_len(2), max_len(40), matches_re(r"[a-z0-9-]+")))
    name: str


State = Literal["open", "closed"]


@attrs.frozen
class Issue:
    """One issue of a project."""

    id: int
    project: int
    title: str
    body: str | None
    state: State
    labels: list[str]
    """Free words."""
    assignee: int | None
    created_at: dt.datetime
    version: int


@attrs.frozen
class NewIssue:
    title: str = attrs.field(validator=and_(min_len(1), max_len(200)))
    body: str | None = None
    labels: list[str] = attrs.field(factory=list, validator=max_len(10))


class IssueChange(TypedDict, total=False):
    title: str
    body: str | None
    state: State


@attrs.frozen
class Filter:
    state: State | None = None
    label: str | None = None
    limit: int = attrs.field(default=20, validator=[ge(1), le(100)])


class Assignee(TypedDict):
    account: int


@attrs.frozen
class Comment:
    id: int
    author: int
    text: str


@attrs.frozen
class NewComment:
    text: str = attrs.field(validator=min_len(1))


app = create_app(Env)
app.use(request_id(), secure_hdrs(), timeout(duration=10_000))


def is_admin(user: User) -> bool:
    return user.role == "admin"


auth = jwt_auth(Env, secret=lambda req: req.env.JWT_SECRET, claims=User)
signed_in = app.authenticated(auth)
anyone = app.authenticated(optional(auth))
admins = signed_in.authenticated(allow(is_admin))


def _token_limit() -> int:
    return 1000


@app.post("/accounts", rate_limit(kv_binding="COUNTS", limit=_token_limit(), window=60))
async def sign_up(req: Request[Env], res: Response) -> None:
    """Make an account, and sign in."""
    given = await req.json(Credentials)
    insert = req.env.DB.prepare("INSERT INTO accounts (email, password, role) VALUES (?, ?, ?) RETURNING *")
    role = "admin" if given.email.startswith("admin@") else "member"
    try:
        account = await insert.bind(given.email, await passwords.hash(given.password), role).one(Account)
    except D1Error as error:
        if error.constraint == "UNIQUE":
            raise CoreError(409, "This address has an account", code="TAKEN") from error
        raise
    res.status(201).json({"id": account.id, "token": await token_for(req, account)})


@app.post("/sessions", rate_limit(kv_binding="COUNTS", limit=_token_limit(), window=60))
async def sign_in(req: Request[Env], res: Response) -> Response:
    given = await req.json(Credentials)
    account = await req.env.DB.prepare("SELECT * FROM accounts WHERE email = ?").bind(given.email).first(Account)
    if not await passwords.verify(given.password, account.password if account else None) or account is None:
        raise CoreError(401, "Wrong address or password", code="WRONG_CREDENTIALS")
    return res.json({"token": await token_for(req, account)})


async def token_for(req: Request[Env], account: Account) -> str:
    return await auth.issue(req, User(sub=str(account.id), role=account.role), expires_in=3600)


@signed_in.get("/me")
async def me(req: Request[Env, User], res: Response) -> None:
    row = req.env.DB.prepare("SELECT id, email, role FROM accounts WHERE id = ?").bind(req.user.id)
    found = await row.first()
    if found is None:
        raise CoreError(410, "This account is gone")
    res.json(found)


@anyone.get("/")
async def home(req: Request[Env, User | None], res: Response) -> None:
    res.json({"name": "tracker", "user": None if req.user is None else req.user.sub})


# -- projects


async def project_of(req: Request[Env, User]) -> Project:
    row = await req.env.DB.prepare("SELECT * FROM projects WHERE slug = ?").bind(req.params["slug"]).first()
    if row is None:
        raise CoreError(404, "No such project", code="NO_PROJECT")
    return {
        "id": int(row["id"]),
        "slug": str(row["slug"]),
        "name": str(row["name"]),
        "owner": int(row["owner"]),
        "archived": bool(row["archived"]),
    }


async def own_project(req: Request[Env, User]) -> Project:
    project = await project_of(req)
    if project["owner"] != req.user.id and req.user.role != "admin":
        raise CoreError(403, "This project is not yours", code="NOT_YOURS")
    return project


@signed_in.post("/projects")
async def create_project(req: Request[Env, User], res: Response) -> None:
    given = await req.json(NewProject)
    insert = req.env.DB.prepare("INSERT INTO projects (slug, name, owner) VALUES (?, ?, ?) RETURNING id")
    try:
        id = await insert.bind(given.slug, given.name, req.user.id).one("id")
    except D1Error as error:
        if error.constraint != "UNIQUE":
            raise
        raise ValidationError([{"path": "slug", "message": "is taken"}]) from error
    res.status(201).header("Location", req.url_for(show_project, slug=given.slug)).json({"id": id, "slug": given.slug})


@signed_in.get("/projects")
async def list_projects(req: Request[Env, User], res: Response) -> None:
    page = page_of(req, limit=10, most=50)
    total = await req.env.DB.prepare("SELECT count(*) AS total FROM projects").one("total")
    rows = req.env.DB.prepare("SELECT id, slug, name FROM projects ORDER BY id LIMIT ? OFFSET ?")
    found = await rows.bind(page.limit, page.offset).all()
    res.header("Link", page.link(req, total=total)).json({"total": total, "items": found.results})


@signed_in.get("/projects/:slug")
async def show_project(req: Request[Env, User], res: Response) -> None:
    res.json(await project_of(req))


@signed_in.put("/projects/:slug/archived")
async def archive(req: Request[Env, User], res: Response) -> None:
    project = await own_project(req)
    await req.env.DB.prepare("UPDATE projects SET archived = 1 WHERE id = ?").bind(project["id"]).run()
    res.json({**project, "archived": True})


@admins.delete("/projects/:slug")
async def delete_project(req: Request[Env, User], res: Response) -> None:
    project = await project_of(req)
    try:
        await req.env.DB.prepare("DELETE FROM projects WHERE id = ?").bind(project["id"]).run()
    except D1Error as error:
        if error.constraint == "FOREIGN KEY":
            raise CoreError(409, "This project has issues", code="NOT_EMPTY") from error
        raise
    res.status(204).send()


# -- issues


@attrs.frozen
class IssuePath:
    slug: str
    number: int = attrs.field(validator=ge(1))


async def issue_of(req: Request[Env, User]) -> Issue:
    path = req.params.parse(IssuePath)
    project = await project_of(req)
    row = req.env.DB.prepare("SELECT * FROM issues WHERE project = ? AND id = ?")
    return await row.bind(project["id"], path.number).one(Issue, error=CoreError(404, "No such issue", code="NO_ISSUE"))


issues = app.Router().authenticated(auth)


@issues.get("/")
async def list_issues(req: Request[Env, User], res: Response) -> None:
    project = await project_of(req)
    asked = req.query.parse(Filter)
    rows = req.env.DB.prepare(
        "SELECT * FROM issues WHERE project = ?1 AND (?2 IS NULL OR state = ?2) "
        "AND (?3 IS NULL OR EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?3)) ORDER BY id LIMIT ?4"
    )
    found = await rows.bind(project["id"], asked.state, asked.label, asked.limit).all(Issue)
    res.json(found.results)


@issues.post("/")
async def create_issue(req: Request[Env, User], res: Response) -> None:
    project = await project_of(req)
    if project["archived"]:
        raise CoreError(409, "This project is archived", code="ARCHIVED")
    given = await req.json(NewIssue)
    insert = req.env.DB.prepare(
        "INSERT INTO issues (project, title, body, labels, created_at) VALUES (?, ?, ?, json(?), ?) RETURNING *"
    )
    labels = "[" + ",".join(f'"{label}"' for label in given.labels) + "]"
    now = dt.datetime.fromtimestamp(req.clock.time(), dt.UTC).isoformat()
    issue = await insert.bind(project["id"], given.title, given.body, labels, now).one(Issue)
    res.status(201).header("ETag", f'"{issue.version}"').json(issue)


@issues.get("/:number")
async def show_issue(req: Request[Env, User], res: Response) -> None:
    issue = await issue_of(req)
    res.header("ETag", f'"{issue.version}"')
    if req.header("If-None-Match") == f'"{issue.version}"':
        res.status(304).send()
        return
    res.json(issue)


@issues.patch("/:number")
async def change_issue(req: Request[Env, User], res: Response) -> None:
    issue = await issue_of(req)
    req.require_match(f'"{issue.version}"', required=True)
    given = await req.json(IssueChange)
    changed = attrs.evolve(issue, **given, version=issue.version + 1)
    await (
        req.env.DB.prepare("UPDATE issues SET title = ?, body = ?, state = ?, version = version + 1 WHERE id = ?")
        .bind(changed.title, changed.body, changed.state, issue.id)
        .run()
    )
    res.json(changed)


@issues.put("/:number/assignee")
async def assign(req: Request[Env, User], res: Response) -> None:
    issue = await issue_of(req)
    given = await req.json(Assignee)
    try:
        statement = req.env.DB.prepare("UPDATE issues SET assignee = ? WHERE id = ?")
        await statement.bind(given["account"], issue.id).run()
    except D1Error as error:
        raise CoreError(422, "No such account", code="NO_ACCOUNT", account=given["account"]) from error
    res.status(204).send()


@issues.delete("/:number/assignee")
async def unassign(req: Request[Env, User], res: Response) -> None:
    issue = await issue_of(req)
    await req.env.DB.prepare("UPDATE issues SET assignee = NULL WHERE id = ?").bind(issue.id).run()
    res.status(204).send()


@issues.get("/:number/comments")
async def list_comments(req: Request[Env, User], res: Response) -> None:
    issue = await issue_of(req)
    cursor = cursor_of(req, int, limit=10)
    rows = req.env.DB.prepare(
        "SELECT id, author, text FROM comments WHERE issue = ? AND id > ? ORDER BY id LIMIT ?"
    ).bind(issue.id, cursor.after or 0, cursor.limit + 1)
    found = await rows.all(Comment)
    shown, after = cursor.cut(found.results, lambda comment: comment.id)
    res.header("Link", cursor.link(req, after)).json(shown)


@issues.post("/:number/comments")
async def comment(req: Request[Env, User], res: Response) -> None:
    issue = await issue_of(req)
    given = await req.json(NewComment)
    if issue.state == "closed" and req.user.role != "admin":
        raise CoreError(409, "Closed issues take no comments", code="CLOSED", state=issue.state)
    insert = req.env.DB.prepare(
        "INSERT INTO comments (issue, author, text) VALUES (?, ?, ?) RETURNING id, author, text"
    )
    res.status(201).json(await insert.bind(issue.id, req.user.id, given.text).one(Comment))


@issues.delete("/:number/comments/:comment{[0-9]+}")
async def delete_comment(req: Request[Env, User], res: Response) -> None:
    issue = await issue_of(req)
    gone = await (
        req.env.DB.prepare("DELETE FROM comments WHERE issue = ? AND id = ? AND (author = ? OR ?)")
        .bind(issue.id, int(req.params["comment"]), req.user.id, req.user.role == "admin")
        .run()
    )
    if not gone.meta.changes:
        raise CoreError(404, "No such comment of yours")
    res.status(204).send()


app.use("/projects/:slug/issues", issues)


@admins.get("/statistics")
async def statistics(req: Request[Env, User], res: Response) -> None:
    rows = await req.env.DB.prepare("SELECT state, count(*) AS issues FROM issues GROUP BY state").all()
    oldest = await req.env.DB.prepare("SELECT min(created_at) AS oldest FROM issues").first("oldest")
    res.header("Cache-Control", "private, max-age=60").json({"states": rows.results, "oldest": oldest})
