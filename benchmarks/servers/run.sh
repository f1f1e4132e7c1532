#!/bin/sh
# Measures the HTTP servers under one and the same application, one process each, with wrk (Debian: apt install wrk).
# Each is warmed up, then measured ROUNDS times for SECONDS; the median of requests per second is what counts.
set -eu
cd "$(dirname "$0")"
rounds=${ROUNDS:-3} seconds=${SECONDS_EACH:-5} connections=${CONNECTIONS:-64}
python=${PYTHON:-../../.venv/bin/python}
port=18080
cat > /tmp/core-bench-post.lua <<'LUA'
wrk.method = "POST"
wrk.body = '{"name": "Ada", "email": "ada@example.com"}'
wrk.headers["Content-Type"] = "application/json"
LUA
measure() {
    name=$1; shift
    port=$((port + 1))
    "$python" -m "$@" > /tmp/core-bench.log 2>&1 &
    server=$!
    trap 'kill $server 2>/dev/null' EXIT
    for _ in $(seq 50); do curl -sf "http://127.0.0.1:$port/users/1" > /dev/null && break; sleep 0.1; done
    wrk -t1 -c"$connections" -d1 "http://127.0.0.1:$port/users/1" > /dev/null
    for _ in $(seq "$rounds"); do
        get=$(wrk -t1 -c"$connections" -d"$seconds" --latency "http://127.0.0.1:$port/users/1")
        post=$(wrk -t1 -c"$connections" -d"$seconds" -s /tmp/core-bench-post.lua "http://127.0.0.1:$port/users")
        echo "$name GET $(echo "$get" | awk '/Requests\/sec/{r=$2} /99%/{p=$2} END{print r, p}') POST $(echo "$post" | awk '/Requests\/sec/{print $2}')"
    done
    kill $server; wait $server 2>/dev/null || true
    trap - EXIT
}
measure uvicorn-asyncio uvicorn app:asgi_app --port 18081 --loop asyncio --http httptools --no-access-log --log-level warning --no-proxy-headers
measure uvicorn-uvloop uvicorn app:asgi_app --port 18082 --loop uvloop --http httptools --no-access-log --log-level warning --no-proxy-headers
measure granian-asgi granian --interface asgi --port 18083 --workers 1 --no-ws app:asgi_app
measure granian-rsgi granian --interface rsgi --port 18084 --workers 1 --no-ws app:rsgi_app
