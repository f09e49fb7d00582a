import { access, constants } from "node:fs/promises";
import path from "node:path";
import { Failure } from "#shared/errors/failure.ts";

/** Refuses a start before it has done anything. Throws Permanent `MissingTool` that names every program which is not on `searchPath`. */
export async function checkTools(tools: readonly string[], searchPath: string): Promise<void> {
  const found = await Promise.all(tools.map((tool) => isOnPath(tool, searchPath)));
  const missing = tools.filter((_, index) => found[index] === false);
  if (missing.length === 0) return;
  const message = `Not found on the PATH: ${missing.join(", ")}. npm start needs them (setpriv comes with util-linux): install them, then start again.`;
  throw new Failure({ class: "Permanent", code: "MissingTool", message });
}

async function isOnPath(tool: string, searchPath: string): Promise<boolean> {
  for (const folder of searchPath.split(":")) {
    const works = await access(path.join(folder, tool), constants.X_OK).then(
      () => true,
      () => false,
    );
    if (works) return true;
  }
  return false;
}
