import { describe, expect, test } from "vitest";
import {
  applying,
  approved,
  demandNewest,
  proposed,
  rejected,
  requestedBy,
  type Approval,
  type Proposal,
} from "./approval.ts";

const proposal: Proposal = {
  key: "key",
  controller: "widgets",
  hash: "h1",
  summary: {},
  by: 1,
  role: "operator",
  requesters: [],
  since: "",
};
const awaiting = (given: Partial<Proposal> = {}) => proposed(undefined, { ...proposal, ...given });
const approve = (current: Approval, by: string, role = "operator") =>
  approved(current, { by, role, hash: current.hash, at: "" });

describe("proposed", () => {
  test("keeps the requesters of the previous plan", () => {
    const first = awaiting({ requesters: ["ada"] });
    const second = proposed(first, { ...proposal, hash: "h2", requesters: ["bob"] });
    expect(second.requesters).toEqual(["ada", "bob"]);
    expect(() => approve(second, "ada")).toThrow(/another user must approve/);
  });

  test("keeps the requesters of a plan that was being applied", () => {
    const given = approve(awaiting({ requesters: ["ada"] }), "bob");
    const begun = applying(given, { hash: "h1", attempt: "a" });
    expect(proposed(begun, proposal)).toMatchObject({ requesters: ["ada"], state: "awaiting" });
  });

  test("requires the role at creation, even if the rule now requires a lower one", () => {
    const stored = awaiting({ role: "admin", by: 2 });
    const again = proposed(stored, { ...proposal, role: "operator", by: 1 });
    expect(again).toMatchObject({ role: "admin", by: 2 });
  });

  test("does not count an approval whose role no longer suffices", () => {
    const given = approve(awaiting(), "ada");
    expect(given.state).toBe("approved");
    const raised = proposed(given, { ...proposal, role: "admin" });
    expect(raised).toMatchObject({ role: "admin", state: "awaiting", approvals: [] });
    expect(approve(raised, "ada", "admin").state).toBe("approved");
  });

  test("asks for another decision about a rejected plan only after a request", () => {
    const stored = awaiting({ requesters: ["ada"] });
    const no = rejected(stored, { by: "eve", hash: "h1", at: "", reason: "no" });
    expect(proposed(no, { ...proposal, requesters: ["ada"] }).state).toBe("rejected");
    expect(proposed(no, proposal, { isRequested: true }).state).toBe("awaiting");
  });
});

describe("approved", () => {
  test("does not count a user who has requested the object since", () => {
    const one = approve(awaiting({ by: 2 }), "ada");
    const requested = requestedBy(one, ["ada"]);
    expect(approve(requested, "bob")).toMatchObject({
      state: "awaiting",
      approvals: [{ by: "bob" }],
    });
  });

  test("counts a user once, with the highest role", () => {
    const one = approve(awaiting({ by: 2 }), "ada", "operator");
    const two = approve(one, "ada", "admin");
    expect(two.approvals).toEqual([{ by: "ada", at: "", role: "admin" }]);
    expect(two.state).toBe("awaiting");
  });
});

describe("applying", () => {
  test("admits only the attempt that has begun", () => {
    const begun = applying(approve(awaiting(), "ada"), { hash: "h1", attempt: "key#2" });
    expect(applying(begun, { hash: "h1", attempt: "key#2" })).toBe(begun);
    expect(applying(begun, { hash: "h1", attempt: "key#1" })).toBeUndefined();
  });
});

describe("demandNewest", () => {
  test("rejects an attempt that is older than one that has changed the approval", () => {
    const stored = awaiting({ epoch: 20 });
    expect(() => demandNewest(stored, 10)).toThrow(/a newer attempt/);
    expect(() => demandNewest(stored, 20)).not.toThrow();
  });
});
