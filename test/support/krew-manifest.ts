import { z } from "zod";

/** Device names of Windows, which krew rejects as names of plugins. */
const DEVICE = /^(CON|PRN|AUX|NUL|COM[1-9]|LPT[1-9])$/i;

const key = z.enum(["os", "arch"]);

const selector = z
  .strictObject({
    matchLabels: z.partialRecord(key, z.string()).optional(),
    matchExpressions: z
      .array(z.strictObject({ key, operator: z.string(), values: z.array(z.string()).optional() }))
      .nonempty()
      .optional(),
  })
  .refine(
    ({ matchLabels, matchExpressions }) =>
      matchExpressions !== undefined || Object.keys(matchLabels ?? {}).length > 0,
    "must not be empty",
  );

const platform = z.strictObject({
  uri: z.url({ protocol: /^https$/ }),
  sha256: z.string().regex(/^[a-f0-9]{64}$/),
  bin: z.string().regex(/^(?!\/)(?!.*\.\.)./),
  files: z
    .array(z.strictObject({ from: z.string().min(1), to: z.string().min(1) }))
    .nonempty()
    .optional(),
  selector,
});

/** The rules of krew for manifests: `validation.ValidatePlugin` of kubernetes-sigs/krew, and its docs. */
export const KrewManifest = z.strictObject({
  apiVersion: z.literal("krew.googlecontainertools.github.com/v1alpha2"),
  kind: z.literal("Plugin"),
  metadata: z.strictObject({
    name: z
      .string()
      .regex(/^[\w-]+$/)
      .refine((name) => !DEVICE.test(name)),
  }),
  spec: z.strictObject({
    version: z.string().regex(/^v\d+\.\d+\.\d+(-[\w.-]+)?(\+[\w.-]+)?$/),
    homepage: z.url(),
    // The docs of krew recommend at most 50 characters for `kubectl krew search`.
    shortDescription: z.string().regex(/^.{1,50}$/),
    description: z.string().min(1),
    caveats: z.string().optional(),
    platforms: z.tuple([platform], platform),
  }),
});
