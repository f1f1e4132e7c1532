"""Security headers, with a nonce for the one script of a page."""

from core import Request, Response, create_app
from core.middleware.secure_headers import NONCE, secure_hdrs

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
