// Where a view is taken, and where the next one: a mode on its way, or contact points.
#pragma once

#include <cmath>
#include <utility>

#include "_bernoulli_view.hpp"

namespace bernoulli {

// Laplace: Newton's method to the mode, with steps halved where they go too far.
class Mode {
public:
    Sites sites;

    Mode(const Problem &problem_, Vector w_, const Design &Phi, const Vector &alpha)
        : sites{Vector(Phi.rows), Vector(Phi.rows), Vector(Phi.rows)}, problem(problem_), w(std::move(w_)) {
        revive(Phi, alpha);
    }

    const Vector &where() const { return w; }

    void drop(size_t k, const Design &Phi, const Vector &alpha) {
        w.erase(w.begin() + k);
        revive(Phi, alpha);
    }

    // The farthest safe point towards the posterior mean.
    void follow(const View &view, const Design &, const Vector &alpha) {
        const double value = fit - penalty(w, alpha), least = value - problem.constants.rounding * std::abs(value);
        Sites there = sites;
        Vector at(w.size()), along(eta.size());
        double part = 1.0;
        for (std::int64_t turn = 0; turn < problem.constants.halvings; ++turn, part /= 2) {
            for (size_t k = 0; k < w.size(); ++k) at[k] = w[k] + part * (view.mean[k] - w[k]);
            for (size_t n = 0; n < eta.size(); ++n) along[n] = eta[n] + part * (view.eta[n] - eta[n]);
            const double new_fit = laplace(problem, along, there);
            if (!(new_fit - penalty(at, alpha) >= least)) continue;
            w.swap(at), eta.swap(along), std::swap(sites, there);
            fit = new_fit;
            return;
        }
    }

private:
    const Problem &problem;
    Vector w, eta;
    double fit = 0.0;  // log p(t | w)

    static double penalty(const Vector &w, const Vector &alpha) {
        double sum = 0.0;
        for (size_t k = 0; k < alpha.size(); ++k) sum += alpha[k] * w[k] * w[k];
        return 0.5 * sum;
    }

    // The model without weights where that is the better start: with all rows saturated there is no curvature.
    void revive(const Design &Phi, const Vector &alpha) {
        eta.resize(Phi.rows);
        blas::multiply(Phi.rows, Phi.columns, 1.0, Phi.at.data(), w.data(), 0.0, eta.data());
        fit = laplace(problem, eta, sites);
        Sites base = sites;
        Vector level(Phi.rows, problem.base_intercept);
        const double base_fit = laplace(problem, level, base);
        if (fit - penalty(w, alpha) >= base_fit) return;
        std::fill(w.begin(), w.end(), 0.0);
        if (problem.flat_intercept) w.back() = problem.base_intercept;
        eta.swap(level), std::swap(sites, base);
        fit = base_fit;
    }
};

// Jaakkola: contact points where the bound is tightest, ξ² = E[η²], with squared extrapolation after every two steps.
class Contact {
public:
    Sites sites;

    Contact(const Problem &problem_, Vector xi_, const Design &, const Vector &)
        : sites{Vector(xi_.size()), Vector(xi_.size()), Vector(xi_.size())}, problem(problem_), xi(std::move(xi_)) {
        jaakkola(problem, xi, sites);
    }

    const Vector &where() const { return xi; }

    void drop(size_t, const Design &, const Vector &) { way.clear(); }

    void follow(const View &view, const Design &Phi, const Vector &) {
        Vector next = tightest(view, Phi);
        way.push_back(std::move(xi));
        xi = way.size() == 2 ? leapt(std::move(next)) : std::move(next);
        jaakkola(problem, xi, sites);
    }

private:
    const Problem &problem;
    Vector xi;
    std::vector<Vector> way;  // the contact points before these, since the last leap

    static Vector tightest(const View &view, const Design &Phi) {
        const size_t N = Phi.rows, K = Phi.columns;
        const int n = static_cast<int>(N), k = static_cast<int>(K);
        const double one = 1.0;
        Vector square(N), spread = Phi.at;
        for (size_t i = 0; i < N; ++i) square[i] = view.eta[i] * view.eta[i];
        if (K > 0) blas::trmm("R", "L", "T", "N", &n, &k, &one, view.root.at.data(), &k, spread.data(), &n);
        for (size_t j = 0; j < K; ++j)
            for (size_t i = 0; i < N; ++i) square[i] += spread[i + j * N] * spread[i + j * N];
        for (double &each : square) each = std::sqrt(each);
        return square;
    }

    // `_leapt` of settling.py.
    Vector leapt(Vector last) {
        const size_t N = last.size();
        Vector x0(N), r(N), v(N);
        double rr = 0.0, vv = 0.0;
        for (size_t n = 0; n < N; ++n) {
            const auto log_of = [](double xi) { return std::log(std::max(xi, rules::TINY)); };
            const double x1 = log_of(way[1][n]);
            x0[n] = log_of(way[0][n]);
            r[n] = x1 - x0[n], v[n] = log_of(last[n]) - 2 * x1 + x0[n];
            rr += r[n] * r[n], vv += v[n] * v[n];
        }
        const double length = std::min(std::sqrt(rr / std::max(vv, rules::TINY)), problem.constants.longest_leap);
        way.clear();
        if (!(length > 1)) return last;
        for (size_t n = 0; n < N; ++n) last[n] = std::exp(x0[n] + 2 * length * r[n] + length * length * v[n]);
        return last;
    }
};

}  // namespace bernoulli
