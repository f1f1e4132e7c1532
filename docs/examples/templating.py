"""Pages from templates: escaped, with a form that no other site can send."""

import attrs
from jinja2 import DictLoader, Environment, StrictUndefined

from core import Bindings, KVNamespace, Request, Response, create_app
from core.middleware.csrf import csrf
from core.middleware.secure_headers import secure_headers

# --8<-- [start:templates]
TEMPLATES = {
    "base.html": """<!doctype html>
<html lang="en">
<title>{% block title %}{% endblock %}</title>
{% block body %}{% endblock %}
</html>
""",
    "guests.html": """{% extends "base.html" %}
{% block title %}Guests{% endblock %}
{% block body %}
<ul>{% for guest in guests %}<li>{{ guest }}</li>{% endfor %}</ul>
{% for problem in problems %}<p role="alert">{{ problem }}</p>{% endfor %}
<form method="post">
  <label>Name <input name="name" required></label>
  <button>Sign</button>
</form>
{% endblock %}
""",
}
pages = Environment(loader=DictLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)


def render(name: str, **values: object) -> str:
    """A page as HTML. A value that a template names and does not get is an error."""
    return pages.get_template(name).render(**values)
    # --8<-- [end:templates]


@attrs.frozen
class Env(Bindings):
    GUESTS: KVNamespace


@attrs.frozen
class Signature:
    name: str


app = create_app(Env)
app.use(secure_headers())
app.use(csrf())


async def names(env: Env) -> list[str]:
    return [key.name for key in (await env.GUESTS.list()).keys]


# --8<-- [start:routes]
@app.get("/guests")
async def guests(req: Request[Env], res: Response) -> None:
    res.html(render("guests.html", guests=await names(req.env), problems=[]))


@app.post("/guests")
async def sign(req: Request[Env], res: Response) -> None:
    signature = (await req.form()).parse(Signature)
    if not signature.name.strip():
        page = render("guests.html", guests=await names(req.env), problems=["A name is missing."])
        res.status(422).html(page)
        return
    await req.env.GUESTS.put(signature.name, "")
    res.redirect("/guests", 303)
    # --8<-- [end:routes]
