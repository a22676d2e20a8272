// A chain of processes as one durable handler of Restate: each process is a journaled side effect.
import { spawn } from "node:child_process";
import { createServer } from "node:http2";
import { createRequire } from "node:module";

// The SDK expects a function that Node 20 does not have yet.
Promise.withResolvers ??= function () {
  const parts = {};
  parts.promise = new this((resolve, reject) => Object.assign(parts, { resolve, reject }));
  return parts;
};
const restate = createRequire(process.argv[2] + "/")("@restatedev/restate-sdk");

const trivial = () =>
  new Promise((done, failed) => {
    const child = spawn("true", [], { stdio: "ignore" });
    child.on("error", failed);
    child.on("exit", (code) => (code === 0 ? done(0) : failed(new Error(`exit ${code}`))));
  });

const chain = restate.service({
  name: "chain",
  handlers: {
    run: async (context, steps) => {
      for (let step = 0; step < steps; step += 1) await context.run(`s${step}`, trivial);
      return steps;
    },
  },
  options: { inactivityTimeout: 600000, abortTimeout: 600000 },
});
createServer(restate.createEndpointHandler({ services: [chain] })).listen(Number(process.argv[3]), "127.0.0.1");
