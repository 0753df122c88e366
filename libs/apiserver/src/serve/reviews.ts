import type { JsonObject } from "@konverge/core";
import type { ResourcePath } from "./request-path.ts";

/** A question about access, answered and not stored. */
export interface Review {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly status: JsonObject;
}

const review = (group: string, kind: string, status: JsonObject): Review => ({
  group,
  version: "v1",
  resource: `${kind.toLowerCase()}s`,
  singular: kind.toLowerCase(),
  kind,
  status,
});

/** Every caller may do everything. */
export const REVIEWS: readonly Review[] = [
  review("authentication.k8s.io", "SelfSubjectReview", {
    userInfo: { username: "anybody", groups: ["system:masters", "system:authenticated"] },
  }),
  review("authorization.k8s.io", "SelfSubjectAccessReview", { allowed: true }),
  review("authorization.k8s.io", "SelfSubjectRulesReview", {
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
    incomplete: false,
  }),
];

/** Returns the review of a path; undefined for any other path. */
export const findReview = ({ group, version, resource }: ResourcePath): Review | undefined =>
  REVIEWS.find(
    (one) => one.group === group && one.version === version && one.resource === resource,
  );
