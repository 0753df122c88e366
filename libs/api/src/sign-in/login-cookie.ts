import { hkdfSync } from "node:crypto";
import { EncryptJWT, jwtDecrypt, errors } from "jose";
import { z } from "zod";

/** Time in which a user must complete a login. */
export const LOGIN_MS = 10 * 60_000;
/** Processes can have different clocks. */
const CLOCK_TOLERANCE_S = 30;
/** Time for which a cookie can be valid in any process. */
export const LONGEST_LOGIN_MS: number = LOGIN_MS + 2 * CLOCK_TOLERANCE_S * 1_000;
const LONGEST = 8_000;
const ALGORITHM = { alg: "dir", enc: "A256GCM" } as const;

const loginSchema = z.object({
  state: z.string(),
  nonce: z.string(),
  verifier: z.string(),
  /** The page to show afterwards. */
  returnTo: z.string(),
});

/** A login that has begun. Only the browser stores it, in a cookie. */
export type Login = z.output<typeof loginSchema>;

/** Returns the value of the cookie. Every process with the same client secret can read it. */
export async function sealLogin(login: Login, secret: string): Promise<string> {
  return await new EncryptJWT(login)
    .setProtectedHeader(ALGORITHM)
    .setExpirationTime(new Date(Date.now() + LOGIN_MS))
    .encrypt(keyOf(secret));
}

/** Undefined for a value that is expired or not of `sealLogin`. */
export async function openLogin(sealed: string, secret: string): Promise<Login | undefined> {
  if (sealed.length > LONGEST) return undefined;
  try {
    const { payload } = await jwtDecrypt(sealed, keyOf(secret), {
      contentEncryptionAlgorithms: [ALGORITHM.enc],
      keyManagementAlgorithms: [ALGORITHM.alg],
      requiredClaims: ["exp"],
      clockTolerance: CLOCK_TOLERANCE_S,
    });
    return loginSchema.safeParse(payload).data;
  } catch (error) {
    if (error instanceof errors.JOSEError) return undefined;
    throw error;
  }
}

function keyOf(secret: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "", "konverge login cookie", 32));
}
