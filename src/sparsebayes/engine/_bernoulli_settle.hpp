// Precisions and view of a model, converged together: `settle` of settling.py, turn by turn the same.
#pragma once

#include <functional>
#include <limits>

#include "_bernoulli_carry.hpp"

namespace bernoulli {

struct Settled {
    std::vector<char> stays;  // of the columns that came in
    Vector alpha, where;
    double evidence;
    Sites sites;
    View view;
    bool arrived;
};

template <typename Carry>
class Settling {
public:
    Settling(const Problem &problem_, Design Phi_, Vector alpha_, Vector rate_, Vector where, double evidence_)
        : problem(problem_),
          Phi(std::move(Phi_)),
          alpha(std::move(alpha_)),
          rate(std::move(rate_)),
          carry(problem, std::move(where), Phi, alpha),
          value(evidence_),
          last(alpha.size()),
          stays(alpha.size(), 1) {
    }

    // `breathe` is called before each turn; what it throws ends the settling.
    Settled run(double tol, const std::function<void()> &breathe) {
        for (std::int64_t turn = 0; turn < problem.constants.settling; ++turn) {
            breathe();
            if (settles(tol)) return result(true);
        }
        view = view_of(problem, Phi, alpha, carry.sites);
        return result(false);
    }

private:
    const Problem &problem;
    Design Phi;
    Vector alpha, rate;
    Carry carry;
    double value, pace = 1.0;
    Vector last;  // step of log α
    std::vector<char> stays;
    View view;

    // One turn; says whether there was nothing left to do.
    bool settles(double tol) {
        const Constants &constants = problem.constants;
        view = view_of(problem, Phi, alpha, carry.sites);
        const double now = evidence(problem, view, carry.sites, alpha, rate), rise = std::abs(now - value);
        value = now;
        const std::int64_t worst = rise <= constants.near ? most_worthless() : -1;
        if (worst >= 0) {
            drop(static_cast<size_t>(worst));
            return false;
        }
        const Vector step = bounded_step();
        double longest = 0.0, agreement = 0.0;
        for (size_t k = 0; k < alpha.size(); ++k) {
            longest = std::max(longest, gamma(k) * std::abs(step[k]));
            agreement += step[k] * last[k];
        }
        if (rise <= tol && longest <= tol) return true;
        pace = agreement < -tol * tol ? std::max(pace / 2, constants.slowest) : std::min(1.1 * pace, 1.0);
        carry.follow(view, Phi, alpha);
        for (size_t k = 0; k < alpha.size(); ++k) {
            last[k] = pace * step[k];
            alpha[k] *= std::exp(last[k]);
        }
        return false;
    }

    double gamma(size_t k) const { return std::clamp(1 - alpha[k] * view.Sigma(k, k), 0.0, 1.0); }

    // Of what the view finds worthless at any precision, what brings least at its own; -1 if there is none.
    std::int64_t most_worthless() const {
        std::int64_t worst = -1;
        double least = std::numeric_limits<double>::infinity();
        for (size_t k = 0; k < alpha.size(); ++k) {
            const double s = gamma(k) / view.Sigma(k, k), q = view.mean[k] / view.Sigma(k, k);
            if (!(rules::gain(rules::ard_candidate(s, q, problem.a, rate[k]), s, q) <= 0)) continue;
            const double present = rules::gain(alpha[k], s, q);
            if (present < least) least = present, worst = static_cast<std::int64_t>(k);
        }
        return worst;
    }

    void drop(size_t k) {
        Phi.drop(k);
        for (Vector *each : {&alpha, &rate, &last}) each->erase(each->begin() + k);
        size_t place = 0;  // of this column among those that came in
        for (size_t before = 0; !stays[place] || before++ < k;) ++place;
        stays[place] = 0;
        carry.drop(k, Phi, alpha);
        value = -std::numeric_limits<double>::infinity();
    }

    Vector bounded_step() const {
        const double longest = problem.constants.longest;
        Vector step = newton_scales(problem, view, alpha, rate);
        for (size_t k = 0; k < step.size(); ++k) {
            step[k] = std::clamp(step[k], -longest, longest);
            if (problem.least_alpha > 0) step[k] = std::max(step[k], std::log(problem.least_alpha / alpha[k]));
        }
        return step;
    }

    Settled result(bool arrived) { return {stays, alpha, carry.where(), value, carry.sites, view, arrived}; }
};

}  // namespace bernoulli
