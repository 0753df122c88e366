// Texts of apimachinery's util/validation, which clients show to users.
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;

const NAME_RULE =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_RULE =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS_1035_RULE =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_RULE =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE_RULE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const tooLong = (max: number) => `must be no more than ${max} bytes`;
// A base may end in a dash: five characters follow.
const maskPrefix = (name: string, isPrefix: boolean) =>
  isPrefix && name.length > 1 && name.endsWith("-") ? `${name.slice(0, -2)}a` : name;

/** Names of most kinds. */
export function subdomainErrors(name: string, isPrefix = false): string[] {
  const checked = maskPrefix(name, isPrefix);
  return [
    ...(checked.length > 253 ? [tooLong(253)] : []),
    ...(SUBDOMAIN.test(checked) ? [] : [SUBDOMAIN_RULE]),
  ];
}

/** Names of namespaces and Services. */
export function dnsLabelErrors(name: string, isPrefix = false): string[] {
  const checked = maskPrefix(name, isPrefix);
  return [
    ...(checked.length > 63 ? [tooLong(63)] : []),
    ...(LABEL.test(checked)
      ? []
      : [SUBDOMAIN.test(checked) ? "must not contain dots" : LABEL_RULE]),
  ];
}

/** Names that also start with a letter. */
export function dns1035LabelErrors(name: string, isPrefix = false): string[] {
  const checked = maskPrefix(name, isPrefix);
  return [
    ...(checked.length > 63 ? [tooLong(63)] : []),
    ...(DNS_1035.test(checked) ? [] : [DNS_1035_RULE]),
  ];
}

/** Keys of labels and annotations, and finalizers: an optional domain, a slash, a name. */
export function qualifiedNameErrors(key: string): string[] {
  const parts = key.split("/");
  const [prefix, name] = parts.length === 1 ? [undefined, key] : parts;
  if (parts.length > 2 || name === undefined) {
    return [
      `a qualified name ${NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const errors: string[] = [];
  if (prefix === "") errors.push("prefix part must be non-empty");
  else if (prefix !== undefined)
    errors.push(...subdomainErrors(prefix).map((text) => `prefix part ${text}`));
  if (name === "") errors.push("name part must be non-empty");
  else if (name.length > 63) errors.push(`name part ${tooLong(63)}`);
  if (!QUALIFIED.test(name)) errors.push(`name part ${NAME_RULE}`);
  return errors;
}

/** Values of labels. */
export function labelValueErrors(value: string): string[] {
  return [
    ...(value.length > 63 ? [tooLong(63)] : []),
    ...(LABEL_VALUE.test(value) ? [] : [LABEL_VALUE_RULE]),
  ];
}
