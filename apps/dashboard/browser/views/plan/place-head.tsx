import { shortName } from "@konverge/core";
import type { ComponentChildren } from "preact";
import { quote } from "../../parts/cli-line.tsx";
import { href } from "../../state/router.ts";
import type { Target } from "../object-view.tsx";

export interface PlaceHeadProps {
  readonly target: Target;
  readonly parent: { readonly title: string; readonly href: string };
  /** The title. */
  readonly children: ComponentChildren;
  readonly actions?: ComponentChildren;
}

/** The head of a page about the plan of an object, which links to the object. */
export function PlaceHead({ target, parent, children, actions }: PlaceHeadProps) {
  const { cluster, controller, namespace, name } = target;
  const place = {
    namespace: namespace === "_" ? undefined : decodeURIComponent(namespace),
    name: decodeURIComponent(name),
  };
  return (
    <header class="object-head">
      <div>
        <p class="crumbs">
          <a href={parent.href}>{parent.title}</a>
          <span aria-hidden="true">/</span>
          <span>{decodeURIComponent(controller)}</span>
          <span aria-hidden="true">/</span>
          <a href={href(`/objects/${cluster}/${controller}/${namespace}/${name}`)}>
            {shortName(place)}
          </a>
        </p>
        <h1>{children}</h1>
      </div>
      {actions}
    </header>
  );
}

/** The arguments of a command about the object. */
export function wordsOf({ controller, namespace, name }: Target): string {
  const where = namespace === "_" ? "" : ` -n ${quote(decodeURIComponent(namespace))}`;
  return `${quote(decodeURIComponent(controller))} ${quote(decodeURIComponent(name))}${where}`;
}
