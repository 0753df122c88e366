import { readLua, type LuaPart } from "@konverge/redis";

/**
 * Start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queueing", SIGCOMM 1996). A tenant is a namespace. Each tenant
 * has one flow per class; a request's tag is one place behind the last of its flow, and at least the current place of the queue (`v`,
 * the highest tag that has started). A tenant with a hundred thousand waiting requests has tags far ahead, so one request of
 * another tenant comes next.
 *
 * The classes are separated by a distance in tags, not by rank: a resync yields to the next 1,024 places only.
 *
 * The hash `fair` holds: v, base (tags below it are the past; BullMQ's priorities count from it), rebasedAt, `w:<tenant>`
 * (weights), `sweptTo` (a cursor over the flows), and `<class>:<tenant>` (the last tag of a flow). Tags only grow.
 */
export const fairTagPart: LuaPart = { lua: readLua(new URL("fair-tag.lua", import.meta.url)) };
