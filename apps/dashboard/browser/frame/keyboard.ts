/** Rows for j and k: links, buttons or summaries, in the order of the page. */
const ROWS = "main [data-row]";

/** Handles keyboard shortcuts. Ignores keys in form fields and dialogs. */
export function watchKeys(): void {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") {
      event.preventDefault();
      document.querySelector<HTMLInputElement>("#search")?.focus();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { target } = event;
    const isEditing =
      target instanceof HTMLElement && target.matches("input, textarea, select, dialog, dialog *");
    if (isEditing) return;
    switch (event.key) {
      case "/":
        event.preventDefault();
        document.querySelector<HTMLInputElement>("#search")?.focus();
        break;
      case "j":
        walk(1);
        break;
      case "k":
        walk(-1);
        break;
      case "?":
        document.querySelector<HTMLElement>("#keys-help")?.togglePopover();
        break;
      default:
    }
  });
}

function walk(step: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(ROWS)];
  const at = rows.findIndex((row) => row === document.activeElement);
  const next = rows[at === -1 ? (step === 1 ? 0 : rows.length - 1) : at + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
