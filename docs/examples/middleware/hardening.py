"""Security headers, with a nonce for the one script of a page; and the names that are answered for."""

from core import Request, Response, create_app
from core.middleware.secure_headers import NONCE, secure_hdrs
from core.middleware.trusted_hosts import trusted_hosts

# --8<-- [start:app]
app = create_app()
app.use(
    secure_hdrs(
        x_frame_options="SAMEORIGIN",
        content_security_policy={"default_src": "'self'", "script_src": ["'self'", NONCE]},
    )
)


@app.get("/")
async def page(req: Request, res: Response) -> None:
    res.html(f'<script nonce="{req.state["csp_nonce"]}">hello()</script>')


# --8<-- [end:app]

# --8<-- [start:hosts]
app.use(trusted_hosts(hosts=["example.com", "*.example.com", "localhost"]))
# --8<-- [end:hosts]
