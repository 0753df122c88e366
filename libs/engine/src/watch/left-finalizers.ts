import type { ApiObject } from "@konverge/core";
import type { Controller } from "../define/define-controller.ts";
import { hasFinalizer } from "../define/finalizer.ts";
import type { Log } from "../define/log.ts";

/** Warns at startup about objects that cannot be deleted, because their `cleanup` was removed from the code. */
export function warnOfLeftFinalizers(
  { name, cleanup, abandonsCleanup, finalizer }: Controller,
  objects: readonly ApiObject[],
  log: Log,
): void {
  if (cleanup !== undefined || abandonsCleanup) return;
  const held = objects.filter((object) => hasFinalizer(object, finalizer));
  if (held.length === 0) return;
  log.warn(
    { controller: name, finalizer, objects: held.length, fix: 'set cleanup: "abandon"' },
    "objects have this controller's finalizer, but it has no cleanup",
  );
}
