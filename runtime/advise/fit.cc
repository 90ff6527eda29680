#include "runtime/advise/fit.h"

#include <optional>
#include <string>
#include <utility>

#include "runtime/advise/fit_relief.h"
#include "runtime/advise/fit_search.h"
#include "runtime/advise/fit_words.h"
#include "runtime/advise/paste.h"
#include "runtime/base/error.h"
#include "runtime/base/flags.h"
#include "runtime/compile/compile.h"
#include "runtime/spec/job_check.h"

namespace hyperrun {
namespace {

// Each offer begins a line, and what to paste for it has the next.
constexpr const char* kOr = "\n    or ";
constexpr const char* kMoreDevices = "\n    or use more devices";
constexpr const char* kPasted = "\n         ";

const char* nothing_helps(bool generates) {
  return generates ? "use more devices, or a smaller model: nothing beyond HBM, fewer slots or a shorter "
                     "context would help"
                   : "use more devices, or a smaller model, batch or sequence: no preset of this mesh, more "
                     "micro-batches or recomputation would help";
}

class Remedy {
 public:
  Remedy(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Lack lack, Effort most)
      : loaded_(loaded),
        purpose_(purpose),
        lack_(lack),
        needs_(lack.needs(plan)),
        search_(loaded, plan, purpose, lack, most) {
    if (lack.tier != Tier::kHbm) return;
    relief_ = relief_of(loaded, plan, purpose, most);
    if (relief_is_too_long(loaded.job, plan, most)) untried_ = "more HBM and more of what lies beyond it";
  }

  const std::optional<Relief>& relief() const { return relief_; }

  std::string text() {
    const bool moves = loaded_.job.memory.policy != "none";
    std::string raise;
    if (moves)
      raise = raises();  // which is compiled first
    else
      search_.begin_time_as_it_is();
    search_.run();
    if (!moves) raise = raises();
    std::string offers;
    for (const Trial& t : search_.best()) offers += offer(t) + kOr;
    if (offers.empty() && search_.anything_helps()) return of_several(raise) + untried();
    if (offers.empty() && search_.untried().empty()) return raise + kOr + nothing_helps(purpose_.generates);
    return offers + raise + (offers.empty() ? kMoreDevices : "") + untried();
  }

 private:
  std::string of_several(const std::string& raise) {
    const Trial together = search_.together();
    if (together.fits) return offer(together) + kOr + raise;
    const char* with_that = relief_ ? "with what there is beyond HBM " : "";
    const bool fits_alone = together.needs <= lack_.budget;  // the other tier is what is too small
    return raise + kMoreDevices +
           (together.what.empty() || fits_alone
                ? ""
                : "\n  the least that was tried " + (with_that + needs(together.needs)) + ": " +
                      together.what);
  }

  // On a line of its own.
  std::string untried() const {
    std::string text = untried_;
    for (const std::string& what : search_.untried()) text += (text.empty() ? "" : "; ") + what;
    if (const int n = search_.untried_together(); n > 0)
      text += (text.empty() ? "" : "; ") + std::to_string(n) + " more combinations";
    return text.empty() ? "" : "\n  not tried for want of time: " + text;
  }

  // Where what lies beyond HBM has no room, more HBM lets less lie there; and more room there may do where
  // HBM is short.
  std::string raises() {
    std::string text = raised(lack_.tier, needs_);
    if (relief_) text += kOr + relieved();
    if (lack_.tier == Tier::kHbm) return text;
    Job none = loaded_.job;
    none.supernode.hbm = Bytes(1);  // is planned for the least that is enough with the pool that there is
    return text + kOr + raised(Tier::kHbm, search_.compiled(none).peak());
  }

  // To the byte: what is told fits if it is done. What other changes cost is told against the first of these.
  // Where nothing moves, HBM changes nothing about a plan: it need not be compiled again.
  std::string raised(Tier tier, Bytes to) {
    Job job = loaded_.job;
    (tier == Tier::kHbm    ? job.supernode.hbm
     : tier == Tier::kPool ? job.supernode.pool
                           : job.supernode.flash) = to;
    const Nanos time = job.memory.policy == "none" ? search_.time_as_it_is() : time_with_room(job);
    if (tier == lack_.tier) with_room_ = time;
    return "raise supernode." + std::string(name(tier)) + " to \"" + std::to_string(to.value) + " B\"" +
           of_profile(job) + ": " + to_string(time) + purpose_.unit() + to_paste(job);
  }

  std::string relieved() const {
    const std::string beyond = relief_->job.memory == loaded_.job.memory
                                   ? ""
                                   : ", " + words_of_beyond(relief_->plan, purpose_.program());
    return change_of(*relief_, loaded_.job) + of_profile(relief_->job) + ": " +
           to_string(purpose_.time(relief_->job, relief_->plan)) + purpose_.unit() + beyond +
           to_paste(relief_->job);
  }

  // No part of the machine is larger than its profile's.
  std::string of_profile(const Job& job) const {
    const SupernodeSpec& s = job.supernode;
    return s.machine && !check_job(job, loaded_.source).empty()
               ? " (more than the profile \"" + s.machine->name + "\" has)"
               : "";
  }

  Nanos time_with_room(const Job& job) {
    const Plan plan = search_.compiled(job);
    HR_CHECK(all_fits(plan, job.supernode));
    return purpose_.time(job, plan);
  }

  std::string needs(Bytes bytes) const {
    return "needs " + std::to_string(bytes.value) + " bytes (" + to_string(bytes) + ")" +
           (lack_.tier == Tier::kHbm ? "" : " of the " + std::string(name(lack_.tier)));
  }

  std::string to_paste(const Job& job) const {
    return kPasted + lines_to_paste(loaded_.source, loaded_.job, job);
  }

  std::string offer(const Trial& t) const {
    const Nanos more = t.time - with_room_;
    return t.what + ": " + needs(t.needs) + ", " + to_string(t.time) + purpose_.unit() + " as simulated (" +
           (more < Nanos(0) ? to_string(Nanos(-more.value)) + " less" : to_string(more) + " more") +
           " than with enough " + (lack_.tier == Tier::kHbm ? "HBM" : std::string(name(lack_.tier))) + ")" +
           (t.beyond.empty() ? "" : ", " + t.beyond) + to_paste(t.job);
  }

  const LoadedJob& loaded_;
  FitPurpose purpose_;
  Lack lack_;
  Bytes needs_;
  FitSearch search_;
  std::optional<Relief> relief_;
  std::string untried_;  // beside what the search leaves out
  Nanos with_room_{};    // a step, if there were enough of what is lacking
};

Lack lack_of(const Plan& plan, const SupernodeSpec& spec) {
  if (plan.peak() > spec.hbm) return {Tier::kHbm, spec.hbm};
  if (plan.of_all_devices(Tier::kPool) > spec.pool) return {Tier::kPool, spec.pool};
  return {Tier::kFlash, spec.flash};
}

// Of a job that moves tensors: HBM and what lies beyond it are both too small.
Error of_both(const Error& of_hbm, const Relief& relief, const SupernodeSpec& spec) {
  const Bytes budget = relief.tier == Tier::kPool ? spec.pool : spec.flash;
  return Error(of_hbm.code(), of_hbm.cause() + cause_of(relief, budget))
      .at(of_hbm.place())
      .legal(of_hbm.legal() + "; or " + std::to_string(relief.hbm.value) + " or more beside " +
             std::to_string(relief.beyond.value) + " or more of the " + std::string(name(relief.tier)));
}

void require_fit_of(const LoadedJob& loaded, const Plan& plan, FitPurpose purpose, Effort most) try {
  check_fits(plan, loaded.job.supernode);
} catch (Error& e) {
  Remedy remedy(loaded, plan, purpose, lack_of(plan, loaded.job.supernode), most);
  if (const auto& relief = remedy.relief(); relief && relief->job.memory == loaded.job.memory)
    e = of_both(e, *relief, loaded.job.supernode);
  e.fix(remedy.text());
  if (!flags().dump_dir.empty())
    purpose.compiled(loaded.job);  // what was tried has overwritten the job's own
  throw;
}

}  // namespace

void require_fit(const LoadedJob& loaded, const Plan& plan, Effort most) {
  require_fit_of(loaded, plan, {}, most);
}

void require_generation_fit(const LoadedJob& loaded, const Plan& plan, Effort most) {
  require_fit_of(loaded, plan, {.generates = true}, most);
}

}  // namespace hyperrun
