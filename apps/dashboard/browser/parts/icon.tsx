/** Paths of 16 by 16 units with one stroke width. */
const ICONS = {
  overview: "M2.5 8.5 8 3l5.5 5.5M4 7.5v6h8v-6",
  attempts: "M3 4h10M3 8h10M3 12h6",
  workflows: "M2.5 3h4.5v3.2H2.5zM9 9.8h4.5V13H9zM4.75 6.2v5.2H9",
  schedules: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11M8 5v3.2l2.2 1.5",
  contention: "M3 6h9.5L10 3.5M13 10H3.5L6 12.5",
  objects: "M3 3.5h10v3H3zM3 9.5h10v3H3z",
  guards: "M8 2.5 13 4.5v3.6c0 3-2.2 4.8-5 5.6-2.8-.8-5-2.6-5-5.6V4.5Z",
  workers: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z",
  dead: "M8 2.5 14 13H2ZM8 6.5v3M8 11.4v.2",
  live: "M2 8h3l2-5 2.5 10L11.5 8H14",
  raw: "M6 4 2.5 8 6 12M10 4l3.5 4L10 12",
  approvals: "M3 3h10v10H3zM5.5 8.2l1.8 1.8 3.4-3.8",
  drift: "M2.5 5.5h7M2.5 10.5h11M9.5 3v5M5.5 8v5",
  audit: "M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2.5",
  docs: "M8 4.2C6.8 3.3 5 3 2.5 3v9.5c2.5 0 4.3.3 5.5 1.2 1.2-.9 3-1.2 5.5-1.2V3c-2.5 0-4.3.3-5.5 1.2ZM8 4.2v9.5",
  search: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4M10.2 10.2 13.5 13.5",
  copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
  right: "M6 3.5 10.5 8 6 12.5",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}
