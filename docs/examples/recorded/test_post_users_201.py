"""POST /users, as `core record` wrote it."""

from core.testing import ANY_ID, ANY_TIME, Answer, Recorded


def test_post_users_201(core_recorded: Recorded) -> None:
    answer = core_recorded(
        "POST",
        "/users",
        json={"name": "New", "email": "new@example.com"},
        seed={
            "DB.users": [
                {"id": 30, "name": "User 30", "email": "u30@example.com"},
            ],
        },
        time=1795627110,
    )
    assert answer == Answer(
        status=201,
        body={"id": 31},
        added={
            "COUNTERS": [
                {
                    "key": "ratelimit|POST /users:10:60|1795627080|127.0.0.1",
                    "value": "1",
                    "expiration": ANY_TIME,
                },
            ],
            "DB.events": [
                {
                    "id": 1,
                    "user_id": 31,
                    "kind": "created",
                    "request_id": ANY_ID,
                },
            ],
            "DB.users": [
                {"id": 31, "name": "New", "email": "new@example.com"},
            ],
        },
    )
