import { expect, test } from "vitest";
import { checkTools } from "./check-tools.ts";

test("programs that are there pass, and every one that is missing is named", async () => {
  await expect(checkTools(["sh"], "/nowhere:/bin")).resolves.toBeUndefined();
  await expect(checkTools(["sh", "no-such-a", "no-such-b"], "/bin")).rejects.toThrow(
    "Not found on the PATH: no-such-a, no-such-b.",
  );
});
