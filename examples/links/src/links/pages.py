"""Pages from `templates/`: what they are given is escaped, and a name that is missing is an error."""

from jinja2 import Environment, PackageLoader, StrictUndefined

templates = Environment(loader=PackageLoader("links"), autoescape=True, undefined=StrictUndefined)


def render(name: str, **values: object) -> str:
    return templates.get_template(name).render(**values)
