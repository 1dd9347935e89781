"""Sound model files for the fuzz target to begin with."""

import warnings

import numpy as np
import pandas as pd
from forging import members_of
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

import sparsebayes


def models():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(30)
    three = np.array(["low", "middle", "high"])[np.digitize(y, [-0.8, 0.8])]
    yield sparsebayes.ARDRegressor(warm_start=True, verbose=np.True_), X, y
    yield sparsebayes.RVMRegressor(far_variance="augment", random_state=np.random.RandomState(3)), X, y
    yield sparsebayes.RVMClassifier(multi_class="softmax", class_weight={"low": 2.0}), X, three
    yield sparsebayes.VBLogisticRegression(), X, y > 0
    yield sparsebayes.DRVMRegressor(n_restarts=1, max_iter=20), X, y
    yield (
        make_pipeline(QuantileTransformer(n_quantiles=5), SelectKBest(f_regression, k=3), sparsebayes.BLSRegressor()),
        X,
        y,
    )
    yield (
        make_pipeline(KNNImputer(), PolynomialFeatures(2), PCA(3), PowerTransformer(), sparsebayes.ARDRegressor()),
        X,
        y,
    )
    yield make_pipeline(SelectFromModel(sparsebayes.ARDRegressor()), sparsebayes.ARDRegressor()), X, y
    frame = pd.DataFrame(X, columns=list("abcd")).assign(k=np.where(y > 0, "x", "y"), m=np.resize(list("uvw"), 30))
    columns = ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["a", "b"]),
            ("o", OneHotEncoder(drop="first", max_categories=2, sparse_output=False), ["k", "m"]),
            ("p", OrdinalEncoder(), ["m"]),
        ],
        remainder="passthrough",
    )
    yield make_pipeline(columns, sparsebayes.ARDRegressor()), frame, y


def seeds(folder):
    """Members of sound files, each with rows to predict."""
    for k, (model, X, y) in enumerate(models()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        path = folder / f"{k}.skops"
        sparsebayes.save(model, path, metadata={"note": [1, None]})
        sparsebayes.load(path).predict(X)
        yield members_of(path), X
