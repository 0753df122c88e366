import { isDeepStrictEqual } from "node:util";
import type { ApiObject, Predicate } from "konverge";

type WithStatus = ApiObject & { readonly status?: unknown };

/**
 * Also starts the handler after its own status writes. A handler that skips a status write because its watch shows the wanted
 * status may have seen an older one; the event of the newer one starts it again.
 */
export const statusChanged: Predicate<WithStatus> = ({ object, previous }) =>
  !isDeepStrictEqual(object.status, previous?.status);
