/** A parsed label selector; an object must meet all of its requirements. */
export interface LabelSelector {
  readonly requirements: readonly LabelRequirement[];
}

interface LabelRequirement {
  readonly key: string;
  readonly operator: "in" | "notin" | "exists" | "missing";
  /** Sorted. */
  readonly values: readonly string[];
}

const KEY = "(?:[A-Za-z0-9.-]+/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?";
const VALUE = "[A-Za-z0-9_.-]*";
const EQUALITY = new RegExp(`^(${KEY})\\s*(==?|!=)\\s*(${VALUE})$`);
const SET = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const EXISTENCE = new RegExp(`^(!?)\\s*(${KEY})$`);

/**
 * Parses a label selector such as `app=web,tier in (a, b),!canary`. Returns undefined for any other text, for example with a
 * comparison of numbers, which only the API server evaluates.
 */
export function parseLabelSelector(text: string): LabelSelector | undefined {
  const requirements: LabelRequirement[] = [];
  // Commas inside of parentheses separate values.
  for (const part of text.split(/,(?![^(]*\))/)) {
    if (part.trim() === "" && text.trim() === "") continue;
    const requirement = parseRequirement(part.trim());
    if (requirement === undefined) return undefined;
    requirements.push(requirement);
  }
  return { requirements };
}

export function matchesLabels(
  { requirements }: LabelSelector,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  return requirements.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    switch (operator) {
      case "exists":
        return value !== undefined;
      case "missing":
        return value === undefined;
      case "in":
        return value !== undefined && values.includes(value);
      case "notin":
        return value === undefined || !values.includes(value);
    }
  });
}

/** True if each requirement of `wide` is one of `narrow`, so that all objects that match `narrow` also match `wide`. */
export function isNarrower(narrow: LabelSelector, wide: LabelSelector): boolean {
  const given = new Set(narrow.requirements.map(textOf));
  return wide.requirements.every((requirement) => given.has(textOf(requirement)));
}

function parseRequirement(text: string): LabelRequirement | undefined {
  const [, key, sign, value] = EQUALITY.exec(text) ?? [];
  if (key !== undefined && value !== undefined) {
    return { key, operator: sign === "!=" ? "notin" : "in", values: [value] };
  }
  const [, setKey, word, list] = SET.exec(text) ?? [];
  if (setKey !== undefined && list !== undefined) {
    const values = list.split(",").map((one) => one.trim());
    if (!values.every((one) => new RegExp(`^${VALUE}$`).test(one))) return undefined;
    return { key: setKey, operator: word === "in" ? "in" : "notin", values: values.toSorted() };
  }
  const [, mark, named] = EXISTENCE.exec(text) ?? [];
  if (named === undefined) return undefined;
  return { key: named, operator: mark === "!" ? "missing" : "exists", values: [] };
}

function textOf({ key, operator, values }: LabelRequirement): string {
  return `${key} ${operator} ${values.join()}`;
}
