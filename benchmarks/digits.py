"""Ten classes of handwritten digits: error, log loss and processor time of our classifiers with their defaults.

    OPENBLAS_NUM_THREADS=1 python benchmarks/digits.py [--seeds 3] [--usps]

The first set is scikit-learn's (1,797 rows of 64 pixels; 60 % of the rows train, means over random splits). With
`--usps` the second is USPS with its own split (7,291 training rows of 256 pixels), read from the folder of data sets
(SPARSEBAYES_DATA).
"""

import argparse
import time

import numpy as np
from peers import quietly
from sets import percent_wrong, usps
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sparsebayes import RVMClassifier, SparseLogisticRegression, VBLogisticRegression


def models():
    return {
        "RVMClassifier": RVMClassifier(),
        "VBLogisticRegression": VBLogisticRegression(),
        "SparseLogisticRegression": SparseLogisticRegression(),
        "... average=False": SparseLogisticRegression(average=False),
        "... softmax": SparseLogisticRegression(multi_class="softmax"),
        "L2 (scikit-learn)": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "SVC (scikit-learn)": make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
    }


def judged(model, X, y, X_test, y_test):
    """Error in per cent, log loss and processor seconds."""
    began = time.process_time()
    quietly(model.fit, X, y)
    seconds = time.process_time() - began
    return percent_wrong(model.predict(X_test), y_test), log_loss(y_test, model.predict_proba(X_test)), seconds


def show(name, kind, rows):
    error, loss, seconds = np.mean(rows, axis=0)
    print(f"{name:8s} {kind:26s} error {error:5.2f} %  log loss {loss:.3f}  {seconds:6.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--usps", action="store_true")
    args = parser.parse_args()
    X, y = load_digits(return_X_y=True)
    for kind in models():
        rows = []
        for seed in range(args.seeds):
            X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.6, random_state=seed, stratify=y)
            rows.append(judged(models()[kind], X_train, y_train, X_test, y_test))
        show("digits", kind, rows)
    if args.usps:
        show("USPS", "RVMClassifier", [judged(RVMClassifier(), *usps(0))])


if __name__ == "__main__":
    main()
