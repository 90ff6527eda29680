// hyperrun: the command line. All errors end here, as one message on standard error and the exit status of
// their kind (docs/errors.md).
#include <fcntl.h>
#include <jemalloc/jemalloc.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>

#include "launcher/commands.h"
#include "launcher/option_values.h"
#include "launcher/usage.h"
#include "runtime/base/error.h"
#include "runtime/base/file_size_limit.h"
#include "runtime/base/log.h"
#include "runtime/process/launch.h"
#include "runtime/report/version.h"

// Builds with sanitizers lack jemalloc: they have allocators of their own.
#pragma weak mallctl

namespace hyperrun {
namespace {

// Keeps freed memory in the process. A planner that compiles one job after another frees and allocates
// gigabytes each time; the kernel would clear the pages again. The setting of arena 0 is separate because
// only that arena exists yet; the other arenas, one a thread, take the default.
void keep_freed_memory() {
  if (mallctl == nullptr) return;
  ssize_t never = -1;
  for (const char* decay :
       {"arenas.dirty_decay_ms", "arenas.muzzy_decay_ms", "arena.0.dirty_decay_ms", "arena.0.muzzy_decay_ms"})
    mallctl(decay, nullptr, nullptr, &never, sizeof never);
}

constexpr const char* kExamples = R"(Examples:
  hyperrun examples/quickstart.textproto           train, on as many devices as the job asks for
  mpirun --oversubscribe -np 4 hyperrun examples/quickstart.textproto
  hyperrun JOB --hostfile hosts                    on several hosts
  hyperrun JOB --resume runs/quickstart/checkpoints/step-000250
  hyperrun check JOB                               does it fit, how long is a step, what does it send
  hyperrun check JOB --memory memory.svg           and draw what fills HBM over a step
  hyperrun generate runs/quickstart --prompt "Call me"
                                                   let the trained model go on
  hyperrun sim JOB                                 the same programs on the simulated machine
  hyperrun plan JOB --out best.textproto           find the best strategy for its model and machine
  hyperrun verify JOB                              its layout beside one device, every tensor
  hyperrun validate                                the simulator beside published measurements
  hyperrun calibrate --devices 4 --out host.textproto
                                                   a profile of this machine, to simulate runs on it
  hyperrun import pretrain_gpt.sh --out job.textproto
                                                   a job of another framework's launch script
  hyperrun import stories15M.bin --tokenizer tokenizer.bin --out stories15M
                                                   a model of llama2.c as a checkpoint to go on from
  hyperrun report runs/quickstart                  what a run used

Jobs are described in docs/job.md, errors and exit codes in docs/errors.md.)";

constexpr const char* kPlanFooter =
    R"(Looks at every way to spread the job's model and batch over its devices. What the job says of parallelism,
micro-batches, recomputation and memory policy is set beside the best, and may be left out. Every strategy gets a
bound, the better ones a forecast, the best are compiled and simulated; how far the best of all can be is
certified. docs/plan.md says more.

Columns: step, simulated; forecast, how far the closed form was from it; MFU, the model's operations over what the
cubes could do; HBM of the fullest device. Where the step goes is the mean of all devices: compute, exposed comm (no
computing hides it), transfer (to and from memory beyond HBM), bubble (waiting for others), optimizer. At the end
stand computing and bubble of the busiest device.

Examples:
  hyperrun plan examples/llama405b_2d.textproto --leaders 4
  hyperrun plan JOB --out best.textproto           and write the best as a job
  hyperrun plan JOB --why                          what each other choice would cost
  hyperrun plan JOB --only tp=4,8 --only zero=1         the best of those
  hyperrun plan JOB --flags megatron               and print it as arguments of Megatron-LM
  hyperrun plan JOB --compare                      beside what other planners can express
  hyperrun plan JOB --pareto --svg plan.svg        what less memory and fewer devices cost, drawn
  hyperrun plan JOB --pareto-devices 64,128,256    the same of these numbers of devices
  hyperrun plan JOB --sensitivity                  what if the bus were half as fast, the pool twice as large
  hyperrun plan JOB --json --ranges 0              for a script: the search alone
  hyperrun plan JOB --prove 8                      execute plans to scale on eight ranks of this host)";

constexpr const char* kVerifyFooter =
    R"(Every tensor of every step is compared: the parts that devices hold are put together and partial sums reduced.
How much round-off may change is measured on one device; devices that hold the same part must hold the same
bits. The text is made up; no corpus is read. docs/verify.md says more.

Examples:
  hyperrun verify examples/quickstart.textproto
  hyperrun verify --random 30 --seed 7             layouts and small models of its own
  hyperrun verify JOB --random 5                   random layouts of the job's model)";

constexpr const char* kValidateFooter =
    R"(Steps that others have measured are compiled and simulated on the machine's profile. Some runs are there to
calibrate profiles; the others judge them, and no number was fitted to those. docs/validation.md says more.

Examples:
  hyperrun validate
  hyperrun validate --rows                                        with the peak of memory, where it was measured
  hyperrun validate --runs my_cluster.csv --profile my_cluster.textproto
  hyperrun validate --calibrate fitted.textproto)";

constexpr const char* kCalibrateFooter =
    R"(Kernels and collectives are timed on so many devices at once, as in a run, and the simulator's figures fitted
to them. A job with supernode { devices: 4 profile: "host.textproto" } is then simulated as it runs here.
docs/profiles.md says more. Let nothing else run meanwhile.

Examples:
  hyperrun calibrate --devices 4 --out host.textproto
  hyperrun calibrate --devices 2 --out host2.textproto --seconds 60
  mpirun --hostfile hosts -np 8 hyperrun calibrate --out cluster.textproto)";

constexpr const char* kGenerateFooter =
    R"(Prompts are taken chunk by chunk, and all sequences grow together; each that ends makes room for the next. What is
drawn depends on the seed, the prompt's number and the position, not on the devices or the company.
docs/generation.md says more.

Examples:
  hyperrun generate runs/quickstart --prompt "Call me" --prompt "The whale" --tokens 40
  hyperrun generate runs/quickstart --prompts prompts.txt --temperature 0.8 --top-p 0.9 --seed 3 --json
  hyperrun generate runs/quickstart --prompts prompts.txt --out texts.jsonl --resume
  hyperrun generate ~/models/llama --devices 2 --prompt "Once upon a time"
  hyperrun generate examples/llama8b_generation_to_scale.textproto --paced)";

constexpr const char* kImportFooter =
    R"(RUN is a launch script or a configuration of Megatron-LM, MindSpeed-LLM, Megatron-Bridge, torchtitan, DeepSpeed,
LLaMA-Factory, hyper-parallel or MindFormers. Nothing of it is executed. A table tells of each setting whether it
was taken, is of no matter, or cannot be expressed; --out gets the job. docs/import.md says more.
Or it is a .bin file of llama2.c in float32: --out gets a folder with model.safetensors, config.json and
tokenizer.json, which --resume takes (docs/checkpoints.md).

Examples:
  hyperrun import pretrain_llama3.sh --out llama3.textproto
  hyperrun import pretrain.sh --out job.textproto --set NNODES=8 --args "dsw 8B 1"
  hyperrun import ds_config.json --model config.json --devices 64 --out job.textproto
  hyperrun import deepseek_v3_671b.toml --devices 512 --profile matrix384 --out job.textproto
  hyperrun import recipes.py --recipe llama3_8b_pretrain_config --devices 16 --out job.textproto
  hyperrun import stories15M.bin --tokenizer tokenizer.bin --out stories15M)";

int run(const RunArguments& arguments) {
  if (process::detect_launcher() != process::Launcher::kNone) return run_as_rank(arguments);
  return run_job(arguments);
}

void add_run_options(CLI::App& app, RunArguments& a) {
  app.add_option("--hostfile", a.hostfile, "mpirun's file of hosts")->check(non_empty());
  app.add_option("--ranks", a.ranks,
                 "processes that host the devices (default: one a device, up to the cores)")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--mpirun-arg", a.mpirun_args, "a further argument for mpirun (may be repeated)")
      ->allow_extra_args(false);
  app.add_option("--run-dir", a.directory, "the run directory, instead of the job's run.directory")
      ->check(non_empty());
  app.add_option("--resume", a.resume, "start from this checkpoint, or from the last one of a run directory")
      ->check(non_empty());
  app.add_option("--restarts", a.restarts,
                 "starts after a loss, in a row without a new checkpoint (default: the job's run.restarts)")
      ->check(whole_number_between(0, 1 << 20));
  app.add_flag("--quiet", a.quiet, "no progress lines");
}

CLI::App* add_calibrate(CLI::App& app, CalibrateArguments& a) {
  CLI::App* command = app.add_subcommand("calibrate", "measure this machine and write its profile");
  command->footer(kCalibrateFooter);
  command->add_option("--out", a.out, "the profile to write")->required()->check(non_empty());
  command->add_option("--devices", a.devices, "how many devices share the machine (default: mpirun's ranks)")
      ->check(whole_number_between(1, 4096));
  command->add_option("--seconds", a.seconds, "how long to measure, about (default 20)")
      ->check(number_between(0.1, 86400.0));
  return command;
}

CLI::App* add_plan(CLI::App& app, PlanArguments& a) {
  CLI::App* command = app.add_subcommand("plan", "find the best strategy for a job's model and machine");
  command->footer(kPlanFooter);
  command->add_option("job", a.job, "the job")->required();
  command->add_option("--space", a.space, "all, megatron or deepspeed: what may be expressed (default all)");
  command
      ->add_option("--only", a.only,
                   "DIMENSION=VALUE[,VALUE...]: strategies with one of these values alone; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--leaders", a.leaders,
          "strategies that are simulated; from two on of each space within it, too, and where a small job "
          "may have to move tensors, of each ZeRO and recomputation (default 8)")
      ->check(whole_number_between(1, 1 << 20));
  command->add_option("--out", a.out, "write the best as a job to this file")->check(non_empty());
  command->add_option("--svg", a.svg, "draw the ranking, and the front of --pareto, in this file (.svg)")
      ->check(non_empty());
  command->add_flag("--pareto", a.pareto, "step time against HBM and number of devices, as far as it trades");
  add_numbers(*command, "--pareto-devices", a.pareto_devices, 1, 1 << 20,
              "the same, of these numbers of devices (default: a quarter of the job's to twice as many)");
  command->add_flag("--sensitivity", a.sensitivity,
                    "search again with each figure of the machine halved and doubled");
  command
      ->add_option(
          "--ranges", a.ranges,
          "so many of the first plans are simulated again with each guess of the machine's profile at "
          "both ends of its range, and with slow devices; 0: none (default 5)")
      ->check(whole_number_between(0, 1 << 10));
  auto* json = command->add_flag("--json", a.json, "print everything as JSON");
  auto* csv = command->add_flag("--csv", a.csv, "print a table for each answer, with commas")->excludes(json);
  command
      ->add_option(
          "--flags", a.flags,
          "say the plan in the terms of megatron, mindspeed, torchtitan, deepspeed or hyper-parallel")
      ->excludes(json)
      ->excludes(csv);
  command->add_flag("--why", a.why, "say what each other value of each dimension costs");
  command->add_flag("--compare", a.compare, "search the other spaces, too");
  auto* prove =
      command->add_option("--prove", a.prove, "execute plans of a small model to scale on so many ranks");
  prove->check(whole_number_between(2, 1024));
  command->add_option("--prove-plans", a.prove_plans, "so many of them (default 6)")
      ->check(whole_number_between(2, 1 << 20))
      ->needs(prove);
  return command;
}

CLI::App* add_generate(CLI::App& app, GenerateArguments& a) {
  CLI::App* command = app.add_subcommand("generate", "let a trained model go on from prompts");
  command->footer(kGenerateFooter);
  command->add_option("source", a.source, "a run directory, a checkpoint with its config.json, or a job")
      ->required();
  command->add_option("--prompt", a.prompts, "text to go on from (may be repeated)")->allow_extra_args(false);
  command->add_option("--prompts", a.prompt_file, "a file with a prompt a line")
      ->check(CLI::ExistingFile.description("a file that is there"));
  command
      ->add_option("--tokens", a.tokens, "of each prompt, at most (default: the job's, or up to 64 that fit)")
      ->check(whole_number_between(1, 1 << 20));
  command->add_option("--checkpoint", a.checkpoint, "instead of the last one, or the job's run.resume")
      ->check(CLI::ExistingDirectory.description("a folder that is there"));
  command->add_option("--devices", a.devices, "of a checkpoint without a job: tensor parallel (default 1)")
      ->check(whole_number_between(1, 4096));
  command->add_option("--temperature", a.temperature, "0: always the likeliest token")
      ->check(number_between(0.0, 1e6));
  command->add_option("--top-k", a.top_k, "draw among so many likeliest tokens; 0: all")
      ->check(whole_number_between(0, 1 << 24));
  command->add_option("--top-p", a.top_p, "draw among the likeliest that have so much probability together")
      ->check(number_between(1e-6, 1.0));
  command->add_option("--seed", a.seed, "of what is drawn")->check(random_seed());
  command->add_option("--slots", a.slots, "sequences that grow at once")
      ->check(whole_number_between(1, 1 << 20));
  command->add_option("--context", a.context, "positions of a sequence, at most")
      ->check(whole_number_between(2, 1 << 24));
  auto* out = command
                  ->add_option("--out", a.out,
                               "write a line of JSON for each prompt to this file, instead of printing them")
                  ->check(non_empty());
  command
      ->add_flag("--resume", a.resumes, "go on with the prompts that an interrupted --out has no result of")
      ->needs(out);
  command
      ->add_option("--restarts", a.restarts,
                   "starts after a loss, in a row without a new text (default: the job's run.restarts)")
      ->check(whole_number_between(0, 1 << 20));
  command->add_flag("--json", a.json, "print a line of JSON for each prompt; with --paced what was measured");
  auto* paced = command->add_flag(
      "--paced", a.paced, "without weights: measure the passes on the paced clock of the job, the source");
  for (const char* other : {"--prompt", "--prompts", "--tokens", "--checkpoint", "--devices", "--temperature",
                            "--top-k", "--top-p", "--seed", "--slots", "--context", "--out", "--restarts"})
    paced->excludes(command->get_option(other));
  return command;
}

CLI::App* add_import(CLI::App& app, ImportArguments& a) {
  CLI::App* command = app.add_subcommand(
      "import", "make a job of another framework's run, or a checkpoint of a llama2.c model");
  command->footer(kImportFooter);
  command->add_option("run", a.file, "the launch script or configuration, or the model FILE.bin")->required();
  command->add_option("--out", a.out, "the job to write; of a model the folder to make")
      ->required()
      ->check(non_empty());
  command->add_option("--from", a.from, "the framework (default: by the content)")->check(non_empty());
  command->add_option("--devices", a.devices, "how many there are, where the run does not say it")
      ->check(whole_number_between(1, 1 << 20));
  command->add_option("--model", a.model, "the config.json of the model, or its folder")->check(non_empty());
  command->add_option("--profile", a.profile, "the machine, as in a job's supernode.profile")
      ->check(non_empty());
  command->add_option("--vocab", a.vocab, "the tokens of the vocabulary")
      ->check(whole_number_between(257, 1 << 22));
  command->add_option("--set", a.variables, "NAME=VALUE: a variable of a script; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--args", a.arguments, "the arguments with which a script is called, in one word");
  command->add_option("--recipe", a.recipe, "the function of a Python file")->check(non_empty());
  command->add_option("--tokenizer", a.tokenizer, "of a llama2.c model: its tokenizer.bin")
      ->check(non_empty());
  return command;
}

// Whether the word is a subcommand. Without one, "hyperrun JOB" means "hyperrun run JOB".
bool names_subcommand(const std::string& word) {
  for (const char* name : {"run", "check", "generate", "sim", "plan", "verify", "validate", "calibrate",
                           "import", "report", "controller"})
    if (word == name) return true;
  return false;
}

bool asks_about_us(const std::string& word) {
  return word == "-h" || word == "--help" || word == "--version";
}

int parse_and_run(std::vector<std::string> words) {
  CLI::App app{"hyperrun: a supernode of NPUs, emulated across processes", "hyperrun"};
  app.footer(kExamples);
  app.set_version_flag("--version", std::string("hyperrun ") + std::string(version()));
  app.require_subcommand(1);

  RunArguments run_arguments;
  run_arguments.command_line = words;
  auto* run_app = app.add_subcommand("run", "run a job (the default: hyperrun JOB)");
  run_app->add_option("job", run_arguments.job, "the job, .textproto or .pb")->required();
  add_run_options(*run_app, run_arguments);

  std::string directory;
  CheckArguments check;
  SimArguments sim;
  int world = 0;
  run_app->footer("Example:\n  hyperrun run examples/quickstart.textproto --run-dir runs/second");
  auto* check_app =
      app.add_subcommand("check", "does a job fit, how long is a step, what does it send; without MPI");
  check_app->footer(
      "Examples:\n  hyperrun check examples/quickstart.textproto              does it fit, how long is a "
      "step, what does it send\n"
      "  hyperrun check examples/quickstart.textproto --layouts --traffic\n"
      "  hyperrun check examples/pipeline.textproto --memory memory.svg");
  check_app->add_option("job", check.job, "the job")->required();
  check_app->add_option("--resume", check.resume, "look at the checkpoint, too, that a run would start from")
      ->check(non_empty());
  check_app
      ->add_option("--memory", check.memory,
                   "simulate a step; print what fills HBM when, and draw it in this file (.svg)")
      ->check(non_empty());
  check_app->add_flag("--layouts", check.layouts, "which axes split each tensor");
  check_app->add_flag("--traffic", check.traffic, "each redistribution of a step, with its reason");
  auto* sim_app = app.add_subcommand("sim", "run the job's programs on the simulated machine");
  sim_app->footer(
      "Example:\n  hyperrun sim examples/quickstart.textproto --trace step.pftrace\n"
      "  hyperrun sim examples/quickstart.textproto --explain 5\n"
      "  hyperrun sim examples/quickstart.textproto --json --no-range      for a script: the time alone\n"
      "  hyperrun sim examples/reinforcement.textproto --lengths 1:32\n"
      "  hyperrun sim examples/llama405b_1d.textproto --faults default --svg goodput.svg");
  sim_app->add_option("job", sim.job, "the job")->required();
  sim_app->add_option("--trace", sim.trace, "write a Perfetto trace of one step to this file")
      ->check(non_empty());
  sim_app->add_option("--chakra", sim.chakra, "write Chakra execution traces: PREFIX.0.et, PREFIX.1.et, ...")
      ->check(non_empty());
  add_numbers(
      *sim_app, "--devices", sim.devices, 0, INT32_MAX,
      "the devices in the traces: 0,1,8 (default: all); with --faults numbers of devices: 256,4096,16384");
  auto* as_json = sim_app->add_flag("--json", sim.json, "print the report as JSON");
  auto* as_csv = sim_app->add_flag("--csv", sim.csv, "print a line for each device, with commas");
  as_csv->excludes(as_json);
  sim_app->add_option("--explain", sim.explain, "show how so many of the costliest instructions are reckoned")
      ->check(whole_number_between(1, 1000000))
      ->excludes(as_json)
      ->excludes(as_csv);
  add_words(*sim_app, "--slow", sim.slow, "DEVICE:FACTOR",
            "devices that compute slower: 7:1.3,9:2 (1.3 and 2 times as long)")
      ->excludes(sim_app->get_option("--explain"));
  sim_app
      ->add_option("--jitter", sim.jitter, "how much computations differ: deviation of the logarithm, 0 to 1")
      ->check(number_between(0, 1))
      ->excludes(sim_app->get_option("--explain"));
  sim_app->add_option("--seed", sim.seed, "of the jitter (default 1)")
      ->check(random_seed())
      ->needs(sim_app->get_option("--jitter"));
  sim_app
      ->add_option("--lengths", sim.lengths,
                   "tokens of completions, LEAST:MOST, evenly drawn, where the job learns from rewards\n"
                   "(default: from 1 to as many as the job allows)")
      ->check(non_empty());
  sim_app->add_flag(
      "--no-range", sim.no_range,
      "do not simulate again with the guesses of the machine's profile at the ends of their ranges");
  auto* faults = sim_app->add_option(
      "--faults", sim.faults,
      "what faults cost, over days: FILE says what fails and how often, or \"default\" (docs/faults.md)");
  faults->check(non_empty());
  sim_app->add_option("--svg", sim.svg, "draw goodput in this file")->check(non_empty())->needs(faults);
  for (const char* other :
       {"--trace", "--chakra", "--explain", "--slow", "--jitter", "--lengths", "--no-range"})
    faults->excludes(sim_app->get_option(other));
  auto* generate_flag = sim_app->add_flag("--generate", sim.generation, "the passes of a generation instead");
  for (const char* other : {"--trace", "--chakra", "--devices", "--csv", "--explain", "--slow", "--jitter",
                            "--lengths", "--faults"})
    generate_flag->excludes(sim_app->get_option(other));
  PlanArguments plan;
  auto* plan_app = add_plan(app, plan);
  VerifyArguments verify;
  auto* verify_app =
      app.add_subcommand("verify", "compare every tensor of a layout with one device, without MPI");
  verify_app->footer(kVerifyFooter);
  verify_app->add_option("job", verify.job, "the job; may be left out with --random");
  verify_app->add_option("--steps", verify.steps, "steps to compare (default 2)")
      ->check(whole_number_between(1, 1000000));
  auto* random = verify_app->add_option("--random", verify.random, "verify so many random layouts instead");
  random->check(whole_number_between(1, 1000000));
  verify_app
      ->add_option("--seed", verify.seed, "of the first random layout (default 1); the next has the next")
      ->check(random_seed())
      ->needs(random);
  ValidateArguments validate;
  auto* validate_app =
      app.add_subcommand("validate", "compare the simulator with published measurements, without MPI");
  validate_app->footer(kValidateFooter);
  validate_app->add_option("--profile", validate.profile,
                           "the machine of runs that name none (default a100_megatron)");
  validate_app->add_option("--runs", validate.runs, "runs of your own, as CSV")
      ->check(CLI::ExistingFile.description("a file that is there"));
  validate_app
      ->add_option("--calibrate", validate.calibrate,
                   "first fit the profile to the runs that are there for it, and write it here")
      ->check(non_empty());
  validate_app->add_flag("--rows", validate.rows, "print every run");
  auto* runs_as_json = validate_app->add_flag("--json", validate.json, "print everything as JSON");
  validate_app->add_flag("--csv", validate.csv, "print a line a run, with commas")->excludes(runs_as_json);
  CalibrateArguments calibration;
  auto* calibrate_app = add_calibrate(app, calibration);
  GenerateArguments generate;
  auto* generate_app = add_generate(app, generate);
  ImportArguments importing;
  auto* import_app = add_import(app, importing);
  auto* report_app = app.add_subcommand("report", "print what a run used");
  report_app->footer("Example:\n  hyperrun report runs/quickstart");
  report_app->add_option("directory", directory, "a run directory")->required();
  auto* controller_app = app.add_subcommand("controller", "")->group("");  // hidden: started by rank 0
  controller_app->add_option("job", run_arguments.job)->required();
  controller_app->add_option("--world", world)->required()->check(whole_number_between(1, INT32_MAX));
  add_run_options(*controller_app, run_arguments);

  if (words.size() > 1 && !names_subcommand(words[1]) && !asks_about_us(words[1])) {
    if (!words[1].starts_with('-')) require_command_or_job(app, {words.begin() + 1, words.end()});
    words.insert(words.begin() + 1, "run");
  }
  std::vector<std::string> reversed(words.rbegin(), words.rend() - 1);
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    throw not_understood(app, e);
  }
  if (*run_app) return run(run_arguments);
  if (*check_app || *sim_app || *plan_app) keep_freed_memory();
  if (*check_app) return check_job(check);
  if (*sim_app) return sim.generation ? simulate_generation(sim) : simulate_job(sim);
  if (*plan_app) return plan_job(plan);
  if (*verify_app) return verify_job(verify);
  if (*validate_app) return validate_runs(validate);
  if (*generate_app) return generate.paced ? pace_generation(generate) : generate_text(generate);
  if (*calibrate_app) return calibrate(calibration);
  if (*import_app) return names_model(importing) ? import_model(importing) : import_job(importing);
  if (*controller_app) return run_controller(run_arguments, world);
  return print_report(directory);
}

// Opens /dev/null for each standard file that is closed. Otherwise the next file that is opened would take
// its number, and output would be written to that file. Since /dev/null is opened for reading, output still
// fails.
void fill_standard_files() {
  int fd = open("/dev/null", O_RDONLY);
  while (fd >= 0 && fd <= STDERR_FILENO) fd = open("/dev/null", O_RDONLY);
  if (fd >= 0) close(fd);
}

// Whether standard output is a pipe whose reader has closed it, on purpose (| head).
bool reader_left() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

// A command succeeds only if all of its output was written.
void check_output() {
  const bool arrived = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (!arrived && !reader_left())
    throw Error(Code::kUnwritable, "cannot write all of the output")
        .at("standard output")
        .fix("free space there, or send it elsewhere");
}

}  // namespace
}  // namespace hyperrun

int main(int argc, char** argv) {
  hyperrun::fill_standard_files();
  hyperrun::survive_file_size_limit();
  hyperrun::init_log("hyperrun");
  try {
    const int status = hyperrun::parse_and_run({argv, argv + argc});
    if (status == 0) hyperrun::check_output();
    return status;
  } catch (const hyperrun::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return static_cast<int>(hyperrun::exit_code(e.code()));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", hyperrun::Error(hyperrun::Code::kInternal, e.what()).what());
    return static_cast<int>(hyperrun::ExitCode::kInternal);
  }
}
