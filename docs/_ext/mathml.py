"""Formulas as MathML, made when the site is built: browsers show it without a script and without a network."""

from latex2mathml.converter import convert


def _visit(display):
    def visit(self, node):
        from docutils import nodes

        mathml = convert(node.astext(), display=display)
        self.body.append(f'<div class="formula">{mathml}</div>' if display == "block" else mathml)
        raise nodes.SkipNode

    return visit


def setup(app):
    """Registers the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_visit("inline"), None), (_visit("block"), None))
    return {"parallel_read_safe": True}
