#include "launcher/fit.h"

#include <string>
#include <utility>

#include "launcher/fit_search.h"
#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/compile/compile.h"

namespace hyperrun {
namespace {

const char* nothing_helps(bool generates) {
  return generates
             ? ", use more devices, or a smaller model: nothing beyond HBM, fewer slots or a shorter "
               "context would help"
             : ", use more devices, or a smaller model, batch or sequence: no preset of this mesh, more "
               "micro-batches or recomputation would help";
}

class Remedy {
 public:
  Remedy(const LoadedJob& loaded, const Plan& plan, Purpose purpose, Lack lack)
      : loaded_(loaded),
        purpose_(purpose),
        lack_(lack),
        needs_(lack.needs(plan)),
        search_(loaded, plan, purpose, lack) {}

  std::string text() {
    const std::string raise = raises();
    search_.run();
    std::string offers;
    for (const Trial& t : search_.best()) offers += offer(t) + "; or ";
    if (!offers.empty()) return offers + raise;
    if (!search_.anything_helps()) return raise + nothing_helps(purpose_.generates);
    const Trial together = search_.together();
    if (together.fits) return offer(together) + "; or " + raise;
    return raise + " or use more devices; the least that was tried " + needs(together.needs) + ": " +
           together.what;
  }

 private:
  // Where what lies beyond HBM has no room, more HBM lets less lie there.
  std::string raises() {
    std::string text = raised(lack_.tier, needs_);
    if (lack_.tier == Tier::kHbm) return text;
    Job none = loaded_.job;
    none.supernode.hbm = Bytes(1);  // is planned for the least that is enough with the pool that there is
    return text + "; or " + raised(Tier::kHbm, purpose_.compiled(none).peak());
  }

  // To the byte: what is told fits if it is done. What other changes cost is told against the first of these.
  std::string raised(Tier tier, Bytes to) {
    Job job = loaded_.job;
    (tier == Tier::kHbm    ? job.supernode.hbm
     : tier == Tier::kPool ? job.supernode.pool
                           : job.supernode.flash) = to;
    const Plan plan = purpose_.compiled(job);
    HR_CHECK(all_fits(plan, job.supernode));
    const Nanos time = purpose_.time(job, plan);
    if (tier == lack_.tier) with_room_ = time;
    return "raise supernode." + std::string(name(tier)) + " to \"" + std::to_string(to.value) +
           " B\": " + to_string(time) + purpose_.unit();
  }

  std::string needs(Bytes bytes) const {
    return "needs " + std::to_string(bytes.value) + " bytes (" + to_string(bytes) + ")" +
           (lack_.tier == Tier::kHbm ? "" : " of the " + std::string(name(lack_.tier)));
  }

  std::string offer(const Trial& t) const {
    const Nanos more = t.time - with_room_;
    return t.what + ": " + needs(t.needs) + ", " + to_string(t.time) + purpose_.unit() + " as simulated (" +
           (more < Nanos(0) ? to_string(Nanos(-more.value)) + " less" : to_string(more) + " more") +
           " than with enough " + (lack_.tier == Tier::kHbm ? "HBM" : std::string(name(lack_.tier))) + ")" +
           (t.beyond.empty() ? "" : ", " + t.beyond);
  }

  const LoadedJob& loaded_;
  Purpose purpose_;
  Lack lack_;
  Bytes needs_;
  FitSearch search_;
  Nanos with_room_{};  // a step, if there were enough of what is lacking
};

Lack lack_of(const Plan& plan, const SupernodeSpec& spec) {
  if (plan.peak() > spec.hbm) return {Tier::kHbm, spec.hbm};
  if (plan.of_all_devices(Tier::kPool) > spec.pool) return {Tier::kPool, spec.pool};
  return {Tier::kFlash, spec.flash};
}

void require_fit_of(const LoadedJob& loaded, const Plan& plan, Purpose purpose) try {
  check_fits(plan, loaded.job.supernode);
} catch (Error& e) {
  e.fix(Remedy(loaded, plan, purpose, lack_of(plan, loaded.job.supernode)).text());
  if (!flags().dump_dir.empty())
    purpose.compiled(loaded.job);  // what was tried has overwritten the job's own
  throw;
}

}  // namespace

void require_fit(const LoadedJob& loaded, const Plan& plan) { require_fit_of(loaded, plan, {}); }

void require_generation_fit(const LoadedJob& loaded, const Plan& plan) {
  require_fit_of(loaded, plan, {.generates = true});
}

}  // namespace hyperrun
