import * as fc from "fast-check";
import { expect, test } from "vitest";
import { AcceptedTokens } from "./accepted-tokens.ts";

test("a user with many tokens displaces only tokens of its own", () => {
  const accepted = new AcceptedTokens({ most: 100, mostOfUser: 5 });
  accepted.add("modest", "bob");
  for (let n = 0; n < 1_000; n++) accepted.add(`greedy-${n}`, "eve");
  expect(accepted.size).toBe(6);
  expect(accepted.ownerOf("modest")).toBe("bob");
  expect(accepted.ownerOf("greedy-0")).toBeUndefined();
  expect(accepted.ownerOf("greedy-999")).toBe("eve");
});

test("the number of tokens is bounded, also per user, and the last one is known", () => {
  const step = fc.record({ token: fc.nat(20), user: fc.nat(5), isDeleted: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const accepted = new AcceptedTokens({ most: 7, mostOfUser: 3 });
      for (const { token, user, isDeleted } of steps) {
        if (isDeleted) accepted.delete(`${token}`);
        else accepted.add(`${token}`, `${user}`);
        expect(accepted.ownerOf(`${token}`)).toBe(isDeleted ? undefined : `${user}`);
        expect(accepted.size).toBeLessThanOrEqual(7);
        const owners = Array.from({ length: 21 }, (_, each) => accepted.ownerOf(`${each}`));
        for (const owner of new Set(owners.filter((each) => each !== undefined))) {
          expect(owners.filter((each) => each === owner).length).toBeLessThanOrEqual(3);
        }
      }
    }),
  );
});
