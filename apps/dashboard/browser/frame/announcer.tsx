import { signal } from "@preact/signals";

const SHOWN_MS = 5_000;
const message = signal("");
let timer: number | undefined;

/** Shows a message for a moment and announces it to screen readers. */
export function announce(text: string): void {
  window.clearTimeout(timer);
  message.value = text;
  timer = window.setTimeout(() => {
    message.value = "";
  }, SHOWN_MS);
}

export function Announcer() {
  return (
    <div class="announcer" role="status">
      {message.value === "" ? null : <p>{message.value}</p>}
    </div>
  );
}
