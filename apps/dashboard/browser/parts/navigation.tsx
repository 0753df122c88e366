import { useEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icon.tsx";
import { viewHref } from "../state/cluster.ts";
import { href } from "../state/router.ts";

export interface NavigationPage {
  readonly to: string;
  readonly icon: IconName;
  readonly title: string;
}

export interface NavigationProps {
  readonly pages: readonly NavigationPage[];
  /** `to` of the current page. */
  readonly current: string;
}

/** Links to all views. On narrow windows, a strip that scrolls to the current one. */
export function Navigation({ pages, current }: NavigationProps) {
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    const strip = list.current;
    const link = strip?.querySelector<HTMLElement>("[aria-current]");
    if (strip == null || link == null) return;
    strip.scrollLeft = link.offsetLeft - (strip.clientWidth - link.offsetWidth) / 2;
  }, [current]);
  return (
    <ul ref={list}>
      {pages.map(({ to, icon, title }) => (
        <li key={to}>
          <a href={viewHref(to)} aria-current={current === to ? "page" : undefined}>
            <Icon name={icon} />
            {title}
          </a>
        </li>
      ))}
      <li class="apart">
        <a href={href("/jobs")}>
          <Icon name="raw" />
          Raw jobs
        </a>
      </li>
    </ul>
  );
}
