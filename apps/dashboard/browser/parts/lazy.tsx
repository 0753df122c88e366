import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading } from "./notice.tsx";

export interface LazyProps<Part> {
  /** Imports the module. Must be the same function in each call. */
  readonly load: () => Promise<Part>;
  readonly children: (part: Part) => ComponentChildren;
}

/** Shows a part of a page whose code is loaded when it is first shown. */
export function Lazy<Part>({ load, children }: LazyProps<Part>) {
  const [part, setPart] = useState<{ readonly loaded: Part }>();
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let isRemoved = false;
    const read = async () => {
      try {
        const loaded = await load();
        if (!isRemoved) setPart({ loaded });
      } catch {
        // The server is unreachable, or serves the hashed files of another version.
        setFailed(true);
      }
    };
    void read();
    return () => {
      isRemoved = true;
    };
  }, [load]);
  if (part !== undefined) return children(part.loaded);
  return failed ? (
    <p class="note bad" role="alert">
      This part of the page could not be loaded. Reload the page.
    </p>
  ) : (
    <Loading />
  );
}
