/** Names of the icons of bull-board that do not describe an action. Others are named after their icon. */
const NAMES = {
  "circle-user": "Links",
  "ellipsis-vertical": "More actions",
  maximize: "Full screen",
  settings: "Settings",
  "rotate-cw": "Retry",
  "rotate-ccw": "Retry",
  "trash-2": "Remove",
};

/**
 * Names the icon buttons of bull-board, which have neither text nor label, for screen readers and voice control. Runs in the
 * page, again whenever bull-board renders.
 */
export const NAMING_SCRIPT: string = `
const names = ${JSON.stringify(NAMES)};
const nameOf = (element) => {
  const icon = [...(element.querySelector("svg")?.classList ?? [])].find((each) => each.startsWith("lucide-"));
  const name = (icon ?? "lucide-action").slice("lucide-".length);
  const words = name.replaceAll("-", " ");
  return names[name] ?? words[0].toUpperCase() + words.slice(1);
};
const textOf = (element) => {
  const copy = element.cloneNode(true);
  for (const hidden of copy.querySelectorAll("[aria-hidden=true]")) hidden.remove();
  return copy.textContent.replaceAll(/\\s+/g, " ").trim();
};
const complete = () => {
  for (const element of document.querySelectorAll("button, a, [role=button]")) {
    if (element.hasAttribute("aria-labelledby")) continue;
    const label = element.getAttribute("aria-label") || element.title;
    const text = textOf(element);
    if (label && text !== "" && !label.includes(text)) {
      element.setAttribute("aria-label", text + ", " + label);
    }
    if (label || text !== "") continue;
    element.setAttribute("aria-label", nameOf(element));
  }
  for (const image of document.querySelectorAll("svg[role=img]")) {
    if (image.querySelector("title") || image.hasAttribute("aria-label")) continue;
    image.removeAttribute("role");
    image.setAttribute("aria-hidden", "true");
  }
};
new MutationObserver(complete).observe(document.body, {
  childList: true,
  subtree: true,
  attributeFilter: ["aria-label"],
});
complete();
`;

/** Raises the contrast of texts of bull-board to 4.5:1. */
export const CONTRAST_STYLE: string = `<style>
kbd, small, [class*="workersBadge"], [class*="nullValue"] { color: inherit !important; opacity: 1 !important; }
@media (prefers-color-scheme: light) {
  [class*="queueName"] { color: color-mix(in srgb, currentcolor 75%, #000) !important; }
}
</style>`;
