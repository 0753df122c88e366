import { readLua, type LuaPart } from "@konverge/redis";
import { nowPart } from "../../scripts/now.ts";
import { forgetRecordPart } from "./forget-record.ts";

/** Largest sum of the records of a cluster, in bytes. */
const MOST_BYTES = 67_108_864;
/** Maximum number of records of each kind that one call deletes, so that it does not block Redis for long. */
const MOST_FORGOTTEN = 200;

/**
 * `count(id, record)` adds a record that is stored to `ages` and `sizes`. `forgetOldest(newest, afterMs)` then deletes the
 * records that are older than `afterMs`, and the oldest ones beyond the limit, but never the newest.
 */
export const limitRecordsPart: LuaPart = {
  lua: readLua(new URL("limit-records.lua", import.meta.url)),
  include: [nowPart, forgetRecordPart],
  constants: { MOST_BYTES, MOST_FORGOTTEN },
};
