// The number of clicks, while they happen. A connection that ends is opened again, later each time.
const count = document.querySelector("[data-live]");
const address = new URL(count.dataset.live, location.href.replace(/^http/, "ws"));

function listen(wait) {
  const socket = new WebSocket(address);
  socket.onopen = () => (wait = 500);
  socket.onmessage = (event) => (count.value = event.data);
  socket.onclose = (event) => {
    if (event.code === 4404) location.href = "/"; // the link was deleted
    else setTimeout(listen, wait * (0.5 + Math.random()), Math.min(2 * wait, 30_000));
  };
}

listen(500);
