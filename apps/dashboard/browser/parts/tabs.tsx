import { formatCount } from "./format.ts";

export interface Tab {
  readonly title: string;
  readonly href: string;
  /** Omitted if unknown. */
  readonly count?: number | undefined;
  /** True while the count is read: its place is kept. */
  readonly isCounting?: boolean | undefined;
  /** True if the count is a lower bound. */
  readonly isMore?: boolean | undefined;
  readonly isCurrent?: boolean | undefined;
}

/** Links to parts of a page or to the states of a list, with their counts. */
export function Tabs({ tabs, label }: { readonly tabs: readonly Tab[]; readonly label: string }) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ title, href, count, isMore = false, isCounting, isCurrent = false }) => (
        <a key={title} href={href} aria-current={isCurrent ? "page" : undefined}>
          {title}
          {count === undefined ? (
            isCounting === true ? (
              <span class="count" />
            ) : null
          ) : (
            <span class={count === 0 ? "count none" : "count"}>
              {formatCount(count)}
              {isMore ? "+" : ""}
            </span>
          )}
        </a>
      ))}
    </nav>
  );
}
