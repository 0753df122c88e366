/** Texts are compared without colors, also where the caller forces them, as nx does for the parts of `npm run check`. */
delete process.env["FORCE_COLOR"];
